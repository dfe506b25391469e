"""Only Meta's exact bytes pass."""

import inspect
import json

import pytest

from tests.whatsapp_meta import SECRET, payload
from whatsapp import signature
from whatsapp.signature import is_authentic, sign

VECTORS = {
    "in-01-text": "ba5a0e001b545c66072b96c3285c421c82524bdfda145a4ff20fa424316e1cd0",
    "in-02-text-escaped-bytes": "2e7dcffcf8fd93daf76326553fdfc044ae28ce302c750afbbe97fc6b4a186517",
    "in-03-button-template-tap": "e890a4eecb3dfa87fe36b75c18be3ff73e47a2bdfaba0fca359e36fcd1e18c09",
    "bad-01-truncated": "b17ad5fe4e880934b8ec749721d69a46d52562013b1ce0f128789059bee68d78",
}
RAW = payload("in-02-text-escaped-bytes")
HEX = VECTORS["in-02-text-escaped-bytes"]


@pytest.mark.parametrize("name", VECTORS)
def test_a_body_that_meta_signed_passes(name: str) -> None:
    assert is_authentic(payload(name), f"sha256={VECTORS[name]}", [SECRET])
    assert sign(payload(name), SECRET) == f"sha256={VECTORS[name]}"


def test_upper_case_digits_pass() -> None:
    assert is_authentic(RAW, f"sha256={HEX.upper()}", [SECRET])


@pytest.mark.parametrize("secrets", [[SECRET, "new"], ["new", SECRET]])
def test_both_secrets_pass_while_one_replaces_the_other(secrets: list[str]) -> None:
    assert is_authentic(RAW, f"sha256={HEX}", secrets)
    assert is_authentic(RAW, sign(RAW, "new"), secrets)


@pytest.mark.parametrize("secrets", [[], [""], ["another"]])
def test_without_the_right_secret_nothing_passes(secrets: list[str]) -> None:
    assert not is_authentic(RAW, f"sha256={HEX}", secrets)


def test_a_signature_made_with_no_secret_does_not_pass() -> None:
    assert not is_authentic(RAW, sign(RAW, ""), [""])


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        HEX,
        "sha256=",
        f"sha256={HEX[:-1]}",
        f"sha256={HEX}0",
        f"sha1={HEX}",
        f"sha1={HEX[:40]}",
        f"SHA256={HEX}",
        f"sha256= {HEX}",
        f" sha256={HEX}",
        f"sha256={HEX}\n",
        f"sha256={HEX},sha256={HEX}",
        f"sha256={'0' * 64}",
        f"sha256={HEX[:-1]}g",
        "sha256=" + "٠" * 64,
    ],
)
def test_no_other_header_passes(header: str | None) -> None:
    assert not is_authentic(RAW, header, [SECRET])


@pytest.mark.parametrize(
    "raw",
    [
        RAW[:-1],
        RAW + b"\n",
        RAW.replace(b"9:30", b"9:31"),
        json.dumps(json.loads(RAW)).encode(),
        json.dumps(json.loads(RAW), ensure_ascii=False, separators=(",", ":")).encode(),
        b"",
    ],
)
def test_no_other_bytes_pass(raw: bytes) -> None:
    assert not is_authentic(raw, f"sha256={HEX}", [SECRET])


def test_the_comparison_takes_the_same_time_for_every_guess() -> None:
    assert "hmac.compare_digest" in inspect.getsource(signature.is_authentic)
