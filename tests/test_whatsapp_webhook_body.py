"""What a webhook body tells, item by item."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.whatsapp_meta import BUSINESS_ACCOUNT_ID, PAYLOADS, PHONE_NUMBER_ID, payload, posted
from whatsapp.errors import Next
from whatsapp.events import (
    UNLIMITED,
    AccountChanged,
    EchoSent,
    Event,
    Ignored,
    MessageReceived,
    PreferenceNoted,
    StatusReceived,
    TemplateAspect,
    TemplateChanged,
    Unreadable,
    Urgency,
)
from whatsapp.webhook_body import parse


def told(raw: bytes) -> list[Event]:
    return list(parse(raw, phone_number_id=PHONE_NUMBER_ID, business_account_id=BUSINESS_ACCOUNT_ID))


def told_by(name: str) -> list[Event]:
    return told(payload(name))


def only(events: list[Event]) -> Any:
    (event,) = events
    return event


def text(**fields: Any) -> dict[str, Any]:
    return {"id": "wamid.1", "from": "584120000001", "timestamp": "1796126400", "type": "text", **fields}


def status(**fields: Any) -> dict[str, Any]:
    return {"id": "wamid.1", "status": "sent", "timestamp": "1796126400", **fields}


# What the items of each file are, in their order.
KINDS = {
    "acct-01-template-approved-as-marketing": [TemplateChanged],
    "acct-02-template-rejected": [TemplateChanged],
    "acct-04-template-quality-two-field-names": [TemplateChanged, TemplateChanged],
    "acct-06-capability-and-phone-quality": [AccountChanged, AccountChanged, AccountChanged],
    "acct-08-alert-and-security": [AccountChanged, AccountChanged],
    "acct-09-user-preferences": [PreferenceNoted, PreferenceNoted],
    "acct-10-unknown-field": [Ignored],
    "bad-01-truncated": [Unreadable],
    "bad-02-top-level-array": [Unreadable],
    "bad-03-wrong-object": [Ignored],
    "bad-05-numbers-as-strings": [StatusReceived, TemplateChanged],
    "bad-06-huge-text": [MessageReceived],
    "bad-07-unknown-type-and-extra-fields": [MessageReceived, MessageReceived],
    "bad-13-hostile-payload-strings": [MessageReceived] * 6,
    "bad-14-invalid-utf8": [Unreadable],
    "in-01-text": [MessageReceived],
    "in-02-text-escaped-bytes": [MessageReceived],
    "in-03-button-template-tap": [MessageReceived],
    "in-05-button-payload-is-label": [MessageReceived],
    "in-06-interactive-button-reply": [MessageReceived],
    "in-07-interactive-list-reply": [MessageReceived],
    "in-10-reaction-add-remove": [MessageReceived, MessageReceived],
    "in-11-unsupported-edit-revoke": [MessageReceived] * 3,
    "in-12-media": [MessageReceived] * 3,
    "in-13-location-contacts-order": [MessageReceived] * 3,
    "in-15-bsuid-only-button": [MessageReceived],
    "in-16-contacts-incomplete": [MessageReceived, MessageReceived],
    "in-18-many-entries-mixed": [
        *(MessageReceived, MessageReceived, StatusReceived, StatusReceived),
        *(TemplateChanged, MessageReceived, StatusReceived),
    ],
    "in-19-200-entries-one-poison": [MessageReceived, StatusReceived] * 50
    + [Unreadable, StatusReceived]
    + [MessageReceived, StatusReceived] * 49,
    "in-21-other-phone-number-id": [Ignored],
    "in-22-smb-message-echo": [EchoSent],
    "in-24-value-level-errors": [AccountChanged],
    "st-01-sent-v23-conversation": [StatusReceived],
    "st-02-sent-then-delivered-opaque": [StatusReceived, StatusReceived],
    "st-03-read-without-delivered": [StatusReceived],
    "st-04-failed-131026": [StatusReceived],
    "st-08-unknown-wamid": [StatusReceived],
    "st-10-unknown-status-values": [StatusReceived] * 4,
}


@pytest.mark.parametrize("name", KINDS)
def test_each_item_of_each_body_is_told_as_what_it_is(name: str) -> None:
    assert [type(event) for event in told_by(name)] == KINDS[name]


def test_every_body_that_meta_posts_is_covered_here() -> None:
    answers_to_calls = {path.stem for path in PAYLOADS.glob("api-*.json")}
    assert {path.stem for path in PAYLOADS.glob("*.json")} - answers_to_calls == set(KINDS)


# --- messages -----------------------------------------------------------------


def test_a_text_is_told_with_its_sender_and_time() -> None:
    assert only(told_by("in-01-text")) == MessageReceived(
        path="entry[0].changes[0].messages[0]",
        wamid="wamid.TESTIN0000000000000000000001AA==",
        at=datetime(2026, 12, 1, 12, 0, 1, tzinfo=UTC),
        type="text",
        phone="584120000001",
        user_id="VE.100000000000000001",
        text="Buenos días, ¿a qué hora es mi cita?",
    )


def test_what_meta_escapes_is_read_as_it_was_written() -> None:
    event = only(told_by("in-02-text-escaped-bytes"))
    assert event.text == "Sí, confirmo mi cita 👍 con el Dr. Núñez / 9:30 <a@b.example>"


@pytest.mark.parametrize(
    ("name", "kind", "data", "title", "context"),
    [
        ("in-03-button-template-tap", "button", "v1.confirm.apt_7Q2M9K4D.s3kQ", "Confirmar", "1"),
        ("in-05-button-payload-is-label", "button", "Confirmar", "Confirmar", "2"),
        (
            "in-06-interactive-button-reply",
            "interactive",
            "v1.cancel.apt_7Q2M9K4D.m20a",
            "Cancelar cita",
            "3",
        ),
        (
            "in-07-interactive-list-reply",
            "interactive",
            "v1.slot.apt_7Q2M9K4D.slt_20261204T1330Z.z9Qe",
            "Vie 4 dic, 9:30 a. m.",
            "4",
        ),
    ],
)
def test_a_tap_is_told_with_its_payload(name: str, kind: str, data: str, title: str, context: str) -> None:
    event = only(told_by(name))
    assert (event.type, event.payload, event.title, event.text) == (kind, data, title, "")
    assert event.context_wamid == f"wamid.TESTOUT{context:0>21}AA=="


def test_a_tap_without_context_is_still_a_tap() -> None:
    item = text(type="button", button={"payload": "CONFIRM_1", "text": "Confirmar"})
    event = only(told(posted({"messages": [item]})))
    assert (event.payload, event.context_wamid) == ("CONFIRM_1", "")


def test_a_forwarded_message_answers_nothing() -> None:
    event = only(told(posted({"messages": [text(context={"forwarded": True})]})))
    assert event.context_wamid == ""


def test_a_reaction_is_no_text_message_and_may_have_been_taken_back() -> None:
    added, removed = told_by("in-10-reaction-add-remove")
    assert (added.type, added.text, added.payload) == ("reaction", "👍", "")
    assert (removed.type, removed.text, removed.payload) == ("reaction", "", "")


def test_edits_and_the_like_keep_their_kind_and_carry_no_words() -> None:
    assert [(event.type, event.text) for event in told_by("in-11-unsupported-edit-revoke")] == [
        ("edit", ""),
        ("revoke", ""),
        ("unsupported", ""),
    ]


def test_of_media_only_the_caption_is_read() -> None:
    assert [(event.type, event.text) for event in told_by("in-12-media")] == [
        ("image", "mi informe"),
        ("audio", ""),
        ("document", ""),
    ]


def test_a_shared_contact_is_not_the_sender() -> None:
    events = told_by("in-13-location-contacts-order")
    assert [event.type for event in events] == ["order", "location", "contacts"]
    assert {event.phone for event in events} == {"584240000002"}


def test_somebody_without_a_number_is_known_by_their_id() -> None:
    event = only(told_by("in-15-bsuid-only-button"))
    assert (event.phone, event.user_id) == ("", "VE.100000000000000006")
    assert event.payload == "v1.confirm.apt_5H8T1B6W.q0Zr"


def test_nobodys_message_is_unreadable() -> None:
    item = text()
    del item["from"]
    assert only(told(posted({"messages": [item]}))).reason == "no sender"


def test_a_missing_name_is_not_missed() -> None:
    assert [event.text for event in told_by("in-16-contacts-incomplete")] == ["hola", "hola otra vez"]


def test_a_huge_text_is_cut_to_its_column() -> None:
    assert len(only(told_by("bad-06-huge-text")).text) == 4096


def test_an_unknown_kind_is_unsupported_and_a_groups_message_is_marked() -> None:
    hologram, group = told_by("bad-07-unknown-type-and-extra-fields")
    assert (hologram.type, hologram.is_group) == ("unsupported", False)
    assert (group.type, group.text, group.is_group) == ("text", "ok", True)


def test_hostile_words_are_told_as_they_are() -> None:
    events = told_by("bad-13-hostile-payload-strings")
    assert events[0].payload == "v1.confirm.apt_7Q2M9K4D'; DROP TABLE x;--.s3kQ"
    assert (events[2].payload, events[2].title) == (
        "../../slot/1\r\nX-Injected: 1",
        "{{7*7}} %s {0} <script>alert(1)</script>",
    )
    assert (events[3].payload, events[3].text) == ("", "Sent")
    assert len(events[4].payload) == 256


def test_what_no_database_keeps_is_taken_out() -> None:
    item = text(text={"body": "a\x00b\ud800c"}, context={"id": "w\x00"})
    event = only(told(posted({"messages": [item]})))
    assert (event.text, event.context_wamid) == ("abc", "w")


def test_the_order_of_the_items_is_kept_and_each_knows_its_place() -> None:
    assert [event.path for event in told_by("in-18-many-entries-mixed")] == [
        "entry[0].changes[0].messages[0]",
        "entry[0].changes[0].messages[1]",
        "entry[0].changes[1].statuses[0]",
        "entry[0].changes[1].statuses[1]",
        "entry[1].changes[0]",
        "entry[2].changes[0].messages[0]",
        "entry[2].changes[0].statuses[0]",
    ]


# --- receipts -----------------------------------------------------------------


def test_a_receipt_carries_our_reference_and_what_it_is_charged_as() -> None:
    sent, delivered = told_by("st-02-sent-then-delivered-opaque")
    assert (sent.status, sent.reference, sent.category) == ("sent", "att_01TESTATTEMPT0000000002", "utility")
    assert (delivered.status, delivered.reference) == ("delivered", "att_01TESTATTEMPT0000000002")
    assert sent.recipient_phone == "584240000002"
    assert sent.verdict is None


def test_a_receipt_needs_no_conversation_and_no_reference() -> None:
    assert (
        only(told_by("st-01-sent-v23-conversation")).status,
        only(told_by("st-08-unknown-wamid")).reference,
    ) == (
        "sent",
        "",
    )
    assert only(told_by("st-03-read-without-delivered")).status == "read"


def test_a_failure_carries_its_reason() -> None:
    event = only(told_by("st-04-failed-131026"))
    assert event.errors[0].code == 131026
    assert event.errors[0].details == "(texto inventado) no se pudo entregar"
    assert event.verdict.next is Next.UNREACHABLE
    assert event.recipient_user_id == ""


def test_a_failure_with_an_unknown_code_is_final() -> None:
    event = only(told(posted({"statuses": [status(status="failed", errors=[{"code": 987654}])]})))
    assert event.verdict.next is Next.NEVER


def test_every_error_of_a_receipt_is_kept() -> None:
    errors = [
        {"code": 131026, "error_subcode": "7", "error_data": "words"},
        {"code": "131049"},
        "odd",
        {"code": None},
    ]
    event = only(told(posted({"statuses": [status(status="failed", errors=errors)]})))
    assert [(fault.code, fault.subcode, fault.details) for fault in event.errors] == [
        (131026, 7, "words"),
        (131049, None, ""),
        (None, None, ""),
    ]


def test_numbers_may_be_text_and_text_may_be_numbers() -> None:
    failed, approved = told_by("bad-05-numbers-as-strings")
    assert failed.errors[0].code == 131026
    assert (failed.recipient_phone, failed.at) == (
        "584120000001",
        datetime(2026, 12, 1, 12, 0, tzinfo=UTC),
    )
    assert (approved.template_id, approved.status, approved.reason) == ("500000000000001", "APPROVED", "")
    assert approved.at == failed.at


def test_new_kinds_of_receipt_are_told_too() -> None:
    assert [event.status for event in told_by("st-10-unknown-status-values")] == [
        "played",
        "warning",
        "deleted",
        "teleported",
    ]


# --- templates ----------------------------------------------------------------


def test_an_approval_tells_the_category_that_came_out() -> None:
    event = only(told_by("acct-01-template-approved-as-marketing"))
    assert (event.aspect, event.status, event.category) == (TemplateAspect.STATUS, "APPROVED", "MARKETING")
    assert (event.business_account_id, event.name, event.language, event.template_id) == (
        BUSINESS_ACCOUNT_ID,
        "recordatorio_cita",
        "es",
        "500000000000001",
    )
    assert event.reason == ""


def test_a_rejection_tells_why() -> None:
    event = only(told_by("acct-02-template-rejected"))
    assert event.status == "REJECTED"
    assert event.reason == (
        "INVALID_FORMAT. (texto inventado) variables pegadas. (texto inventado) ponga palabras entre ellas"
    )


def test_quality_is_known_by_its_keys_and_the_language_by_either_dash() -> None:
    first, second = told_by("acct-04-template-quality-two-field-names")
    assert (first.aspect, first.quality, first.status) == (TemplateAspect.QUALITY, "YELLOW", "")
    assert (second.aspect, second.quality, second.status) == (TemplateAspect.QUALITY, "RED", "")
    assert first.language == second.language == "es_MX"


NAMED = {"message_template_name": "x", "message_template_language": "es", "message_template_id": 1}


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("reinstated", "APPROVED"),
        ("UNARCHIVED", "APPROVED"),
        ("FLAGGED", ""),
        ("PAUSED", "PAUSED"),
        ("NEW", "NEW"),
    ],
)
def test_the_words_of_the_webhook_become_those_of_the_api(event: str, state: str) -> None:
    raw = posted({**NAMED, "event": event}, field="message_template_status_update")
    assert only(told(raw)).status == state


def test_a_warning_of_a_new_category_tells_the_present_and_the_coming_one() -> None:
    value = {**NAMED, "new_category": "UTILITY", "correct_category": "MARKETING"}
    event = only(told(posted(value, field="template_category_update")))
    assert (event.category, event.coming_category) == ("UTILITY", "MARKETING")


def test_a_decision_that_names_no_template_is_unreadable() -> None:
    assert (
        only(told(posted({"event": "APPROVED"}, field="message_template_status_update"))).reason
        == "no template"
    )
    assert only(told(posted(NAMED, field="message_template_status_update"))).reason == "no event"


def test_changed_parts_are_told() -> None:
    event = only(told(posted(NAMED, field="message_template_components_update")))
    assert event.aspect is TemplateAspect.COMPONENTS


# --- number and account -------------------------------------------------------


def test_a_limit_is_read_in_each_of_its_forms() -> None:
    first, second, third = told_by("acct-06-capability-and-phone-quality")
    assert (first.daily_limit, second.daily_limit, third.daily_limit) == (2000, 250, UNLIMITED)
    assert (third.kind, third.event, third.urgency) == (
        "phone_number_quality_update",
        "THROUGHPUT_UPGRADE",
        Urgency.NOTE,
    )


@pytest.mark.parametrize(
    ("written", "limit"),
    [("TIER_2K", 2000), ("TIER_100K", 100_000), ("250", 250), (-1, UNLIMITED), ("TIER_X", None), ([], None)],
)
def test_a_limit_may_have_other_forms_too(written: object, limit: int | None) -> None:
    raw = posted({"max_daily_conversations_per_business": written}, field="business_capability_update")
    assert only(told(raw)).daily_limit == limit


def test_an_alert_is_for_a_person_and_an_attack_on_the_pin_is_urgent() -> None:
    alert, security = told_by("acct-08-alert-and-security")
    assert (alert.kind, alert.urgency) == ("account_alerts", Urgency.ALERT)
    assert (security.kind, security.event, security.urgency) == (
        "security",
        "PIN_RESET_REQUEST",
        Urgency.URGENT,
    )


def test_trouble_of_the_number_touches_no_message() -> None:
    event = only(told_by("in-24-value-level-errors"))
    assert (event.kind, event.error_code, event.urgency, event.may_send) == (
        "errors",
        130429,
        Urgency.ALERT,
        None,
    )
    broken = only(told(posted({"errors": [{"code": 131042}]})))
    assert (broken.urgency, broken.may_send) == (Urgency.URGENT, False)


@pytest.mark.parametrize(
    ("value", "may_send", "urgency"),
    [
        ({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}}, False, Urgency.URGENT),
        ({"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "REINSTATE"}}, True, Urgency.ALERT),
        (
            {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "SCHEDULE_FOR_DISABLE"}},
            None,
            Urgency.ALERT,
        ),
        (
            {
                "event": "ACCOUNT_RESTRICTION",
                "restriction_info": [{"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING"}],
            },
            False,
            Urgency.URGENT,
        ),
        (
            {
                "event": "ACCOUNT_RESTRICTION",
                "restriction_info": [{"restriction_type": "RESTRICTED_UTILITY_TEMPLATES"}, 7],
            },
            None,
            Urgency.ALERT,
        ),
        ({"event": "ACCOUNT_DELETED"}, False, Urgency.URGENT),
        ({"event": "ACCOUNT_RECONNECTED"}, True, Urgency.NOTE),
        ({"event": "PARTNER_ADDED"}, None, Urgency.NOTE),
        ({}, None, Urgency.NOTE),
    ],
)
def test_news_of_the_account_tell_whether_we_may_go_on(
    value: dict[str, Any], may_send: bool | None, urgency: Urgency
) -> None:
    event = only(told(posted(value, field="account_update")))
    assert (event.may_send, event.urgency) == (may_send, urgency)


def test_news_of_another_account_are_ignored_and_any_is_ours_when_none_is_named() -> None:
    raw = payload("acct-02-template-rejected").replace(BUSINESS_ACCOUNT_ID.encode(), b"100000000000009")
    assert only(told(raw)).why == "another account"
    (event,) = parse(raw, phone_number_id=PHONE_NUMBER_ID, business_account_id="")
    assert isinstance(event, TemplateChanged)


# --- odd shapes -----------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"entry": [' + b"9" * 5000 + b"]}",
    ],
)
def test_a_body_that_is_no_object_is_one_unreadable_item(raw: bytes) -> None:
    event = only(told(raw))
    assert isinstance(event, Unreadable)
    assert event.path == ""


OURS = '{"object": "whatsapp_business_account", "entry": %s}'


@pytest.mark.parametrize("entry", ["null", "[]", '[{"id": "1"}]', '[{"changes": []}]', '[{"changes": null}]'])
def test_a_body_without_news_tells_nothing(entry: str) -> None:
    assert told((OURS % entry).encode()) == []


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("{}", "entry"),
        ("7", "entry"),
        ("[7]", "entry[0]"),
        ('[{"changes": {}}]', "entry[0].changes"),
        ('[{"changes": ["x"]}]', "entry[0].changes[0]"),
        ('[{"changes": [{"field": "messages"}]}]', "entry[0].changes[0]"),
        ('[{"changes": [{"field": "messages", "value": []}]}]', "entry[0].changes[0]"),
        ('[{"changes": [{"field": "messages", "value": {}}]}]', "entry[0].changes[0]"),
    ],
)
def test_an_odd_part_is_named_by_its_place(entry: str, path: str) -> None:
    event = only(told((OURS % entry).encode()))
    assert isinstance(event, Unreadable)
    assert event.path == path


@pytest.mark.parametrize(
    "item",
    [
        None,
        7,
        "x",
        [],
        {},
        text(id=None),
        text(id=""),
        text(id="w" * 256),
        text(timestamp=None),
        text(timestamp="soon"),
        text(timestamp=-1),
        text(timestamp=1e300),
        text(timestamp="9" * 19),
        text(timestamp=True),
        text(**{"from": "juan"}),
        text(**{"from": ""}),
        text(**{"from": "5" * 60}),
        text(**{"from": {}}),
    ],
)
def test_a_message_that_lacks_what_it_must_have_is_unreadable_alone(item: object) -> None:
    events = told(posted({"messages": [item, text(id="wamid.2")], "statuses": [status()]}))
    assert [type(event) for event in events] == [Unreadable, MessageReceived, StatusReceived]


@pytest.mark.parametrize(
    "item",
    [
        text(type=None),
        text(type=7),
        text(type="text", text=None),
        text(type="text", text=[]),
        text(type="text", text={"body": 7}),
        text(type="button", button="x"),
        text(type="button", button={}),
        text(type="interactive", interactive=None),
        text(type="interactive", interactive={"type": "type"}),
        text(type="interactive", interactive={"type": ["x"]}),
        text(type="interactive", interactive={"type": "nfm_reply"}),
        text(type="id"),
        text(context="x"),
        text(context={"id": {}}),
        text(**{"from": 584120000001}),
        text(**{"from": "+584120000001"}),
        text(timestamp=1796126400),
    ],
)
def test_a_message_with_odd_parts_is_still_a_message(item: dict[str, Any]) -> None:
    assert isinstance(only(told(posted({"messages": [item]}))), MessageReceived)


@pytest.mark.parametrize("item", [status(id=7**200), status(status=None), status(timestamp="")])
def test_a_receipt_that_lacks_what_it_must_have_is_unreadable(item: dict[str, Any]) -> None:
    assert isinstance(only(told(posted({"statuses": [item]}))), Unreadable)


@pytest.mark.parametrize(
    "fields",
    [
        {"errors": None},
        {"errors": {}},
        {"errors": [[]]},
        {"pricing": "x"},
        {"pricing": {"category": {}}},
        {"recipient_id": []},
        {"biz_opaque_callback_data": 7},
        {"biz_opaque_callback_data": "x" * 9000},
        {"status": "x" * 9000},
    ],
)
def test_a_receipt_with_odd_parts_is_still_a_receipt(fields: dict[str, Any]) -> None:
    assert isinstance(only(told(posted({"statuses": [status(**fields)]}))), StatusReceived)


@pytest.mark.parametrize("field", [None, 7, {}, "", "future"])
def test_a_field_that_we_do_not_know_is_ignored(field: object) -> None:
    change = {"field": field, "value": {}}
    raw = json.dumps(
        {"object": "whatsapp_business_account", "entry": [{"id": BUSINESS_ACCOUNT_ID, "changes": [change]}]}
    )
    assert isinstance(only(told(raw.encode())), Ignored)
