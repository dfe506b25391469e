"""Meta's error codes and what follows from each: the whole table, said a second time."""

import pytest

from whatsapp.errors import Next, known_codes, verdict

EXPECTED = {
    Next.RETRY: "1 2 131000 131016 131057 133004 135000",
    Next.PACE: "4 17 341 613 80007 80008 80012 130429 131056",
    Next.UNREACHABLE: "131026",
    Next.NEVER: "130403 130472 131043 131047 131049 131050 137000",
    Next.TEMPLATE: (
        "131063 132000 132001 132007 132015 132016 200002 2388019 2388039 2388040 2388047 2388072 2388073 "
        "2388293 2388299"
    ),
    Next.CHANNEL: (
        "0 3 10 33 104 190 200-299 368 130497 131005 131030 131031 131037 131042 131045 131048 131064 133000 "
        "133005 133006 133008 133009 133010 133015 133016 2388012 2388091 2388093 2388103 2494100"
    ),
    Next.BUG: (
        "100 130501 131008 131009 131020 131021 131041 131044 131051 131053 131055 131059 131062 "
        "131201-131215 132005 132008 132012 132018 132068 132069 134011 134100-134103 138000-138999 "
        "139000-139004 139100-139103 147001-147005 1752041 2494164-2494179 2593107 2593108"
    ),
    Next.IGNORE: "131052 131060 200005-200007",
}


def spelt_out(codes: str) -> list[int]:
    spans = [part.split("-") for part in codes.split()]
    return [code for span in spans for code in range(int(span[0]), int(span[-1]) + 1)]


@pytest.mark.parametrize("following", list(Next))
def test_every_code_is_followed_by_what_its_class_says(following: Next) -> None:
    for code in spelt_out(EXPECTED[following]):
        assert verdict(code).next is following, code
        assert verdict(code).is_known, code


def test_the_table_has_no_code_that_is_not_listed_here() -> None:
    assert sorted(known_codes()) == sorted(code for codes in EXPECTED.values() for code in spelt_out(codes))


@pytest.mark.parametrize(("code", "tries"), [(1, 3), (131000, 4), (135000, 2), (131016, None), (2, None)])
def test_some_troubles_are_retried_a_few_times_only(code: int, tries: int | None) -> None:
    assert verdict(code).tries == tries


def test_a_pair_limit_holds_for_one_patient_and_a_throughput_limit_for_all() -> None:
    assert verdict(131056).only_this_patient
    assert not verdict(130429).only_this_patient


@pytest.mark.parametrize("code", [130472, 131050, 131063])
def test_a_refusal_that_only_marketing_knows_tells_of_drift(code: int) -> None:
    assert verdict(code).means_marketing


def test_most_refusals_say_nothing_of_the_category() -> None:
    assert not verdict(131026).means_marketing


def test_a_code_may_be_written_as_text() -> None:
    assert verdict("131026") == verdict(131026)
    assert verdict(" 190 ") == verdict(190)


@pytest.mark.parametrize("code", [None, "", "abc", -1, 999_999, 131999, True, "9" * 5000])
def test_an_unknown_code_is_tried_once_more_in_an_answer_and_never_in_a_receipt(code: object) -> None:
    in_answer, in_receipt = verdict(code), verdict(code, in_receipt=True)  # type: ignore[arg-type]
    assert (in_answer.next, in_answer.tries, in_answer.is_known) == (Next.RETRY, 2, False)
    assert (in_receipt.next, in_receipt.is_known) == (Next.NEVER, False)


def test_a_known_code_means_the_same_in_an_answer_and_in_a_receipt() -> None:
    assert all(verdict(code) == verdict(code, in_receipt=True) for code in known_codes())


def test_another_country_that_we_may_not_write_to_is_that_patients_matter() -> None:
    assert verdict(130497, to_venezuela=False).next is Next.NEVER


@pytest.mark.parametrize("subcode", [33, "33"])
def test_a_wrong_id_of_ours_closes_the_channel(subcode: int | str) -> None:
    assert verdict(100, subcode=subcode).next is Next.CHANNEL


def test_a_refused_template_hides_behind_a_bad_parameter() -> None:
    assert verdict(100, subcode=2388299).next is Next.TEMPLATE
    assert verdict("100", subcode="2388293").next is Next.TEMPLATE


def test_a_subcode_of_another_code_changes_nothing() -> None:
    assert verdict(190, subcode=2388299).next is Next.CHANNEL
    assert verdict(130429, subcode=2494055).next is Next.PACE
    assert verdict(100, subcode=190).next is Next.BUG


@pytest.mark.parametrize("code", [100, 131009])
def test_a_bad_parameter_that_names_the_recipient_is_the_recipients_fault(code: int) -> None:
    assert verdict(code, details="Recipient is not a valid number").next is Next.UNREACHABLE
    assert verdict(code, details="Parameter name is missing").next is Next.BUG
