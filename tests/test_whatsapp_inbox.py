"""Posts are worked off item by item, once, whatever happens on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, InterfaceError, OperationalError, connection
from django.dispatch import Signal

from tests.factories import MARK, PHONE_MARK
from tests.whatsapp_meta import payload, posted
from whatsapp import inbox, signals
from whatsapp.events import AccountChanged, MessageReceived, StatusReceived, TemplateChanged
from whatsapp.models import (
    ConversationWindow,
    InboundMessage,
    QuarantinedItem,
    StatusEvent,
    Template,
    WebhookPost,
)

NOW = datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
SENT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def text(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"wamid.{number}",
        "from": f"58{PHONE_MARK}0001",
        "timestamp": "1796126400",
        "type": "text",
        "text": {"body": f"Hola {MARK}"},
        **fields,
    }


def status(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": f"wamid.OUT{number}", "status": "delivered", "timestamp": "1796126400", **fields}


def store(raw: bytes) -> WebhookPost:
    post = inbox.store(raw)
    assert post
    return post


def messages(*items: Any) -> bytes:
    return posted({"messages": list(items)})


def statuses(*items: Any) -> bytes:
    return posted({"statuses": list(items)})


@contextmanager
def listening(signal: Signal, receiver: Callable[..., Any]) -> Iterator[None]:
    def receive(**news: Any) -> Any:
        return receiver(**news)

    signal.connect(receive, weak=False)
    try:
        yield
    finally:
        signal.disconnect(receive)


class Ear:
    """Keeps what it hears, and answers as told."""

    def __init__(self, *, answer: Any = None, fault: Exception | None = None) -> None:
        self.heard: list[Any] = []
        self.answer, self.fault = answer, fault

    def __call__(self, **news: Any) -> Any:
        if self.fault:
            raise self.fault
        if "events" in news:
            self.heard += news["events"]
            return [self.answer] * len(news["events"])
        self.heard.append(news["event"])
        return self.answer


# --- storing ------------------------------------------------------------------


@pytest.mark.django_db
def test_a_body_is_kept_byte_for_byte() -> None:
    post = store(payload("bad-14-invalid-utf8"))
    post.refresh_from_db()
    assert bytes(post.body) == payload("bad-14-invalid-utf8")
    assert post.processed_at is None


@pytest.mark.django_db
def test_the_same_bytes_are_kept_once() -> None:
    store(b"{}")
    assert inbox.store(b"{}") is None
    assert inbox.store(b"{} ")
    assert WebhookPost.objects.count() == 2


# --- working off --------------------------------------------------------------


@pytest.mark.django_db
def test_a_message_is_kept_and_told_once() -> None:
    ear = Ear()
    with listening(signals.message_received, ear):
        post = store(payload("in-03-button-template-tap"))
        assert inbox.work_off(now=NOW) == 1
        assert inbox.work_off(now=NOW) == 0
    row = InboundMessage.objects.get()
    assert (row.wamid, row.from_phone, row.from_user_id, row.type, row.payload, row.post_id) == (
        "wamid.TESTIN0000000000000000000003AA==",
        "584120000001",
        "VE.100000000000000001",
        "button",
        "v1.confirm.apt_7Q2M9K4D.s3kQ",
        post.pk,
    )
    assert (row.sent_at, row.received_at) == (datetime(2026, 12, 1, 12, 0, 3, tzinfo=UTC), NOW)
    assert [type(event) for event in ear.heard] == [MessageReceived]
    post.refresh_from_db()
    assert (post.processed_at, post.claimed_until, post.error) == (NOW, None, "")


@pytest.mark.django_db
def test_a_message_that_comes_in_another_post_is_not_told_again() -> None:
    ear = Ear()
    with listening(signals.message_received, ear):
        store(messages(text()))
        store(messages(text(), text(2)))
        inbox.work_off(now=NOW)
    assert [event.wamid for event in ear.heard] == ["wamid.1", "wamid.2"]


@pytest.mark.django_db
def test_only_the_named_post_is_worked_off() -> None:
    first, second = store(messages(text())), store(messages(text(2)))
    assert inbox.work_off(now=NOW, post_id=second.pk) == 1
    assert list(WebhookPost.objects.unprocessed()) == [first]


@pytest.mark.django_db
def test_posts_are_worked_off_oldest_first_up_to_the_limit() -> None:
    posts = [store(messages(text(number))) for number in range(3)]
    assert inbox.work_off(now=NOW, limit=2) == 2
    assert list(WebhookPost.objects.unprocessed()) == posts[2:]


@pytest.mark.django_db
def test_a_tick_may_leave_the_newest_posts_to_others() -> None:
    old, new = store(messages(text())), store(messages(text(2)))
    WebhookPost.objects.filter(pk=old.pk).update(received_at=NOW - timedelta(minutes=1))
    WebhookPost.objects.filter(pk=new.pk).update(received_at=NOW)
    assert inbox.work_off(now=NOW, older_than=timedelta(seconds=30)) == 1
    assert list(WebhookPost.objects.unprocessed()) == [new]


@pytest.mark.django_db
def test_a_post_that_somebody_holds_is_left_to_them_until_their_lease_is_over() -> None:
    post = store(messages(text()))
    WebhookPost.objects.filter(pk=post.pk).update(claimed_until=NOW + timedelta(seconds=1))
    assert inbox.work_off(now=NOW) == 0
    assert inbox.work_off(now=NOW + timedelta(seconds=2)) == 1


@pytest.mark.django_db
def test_a_post_that_no_worker_survives_is_given_up_and_told(caplog: pytest.LogCaptureFixture) -> None:
    post, now, deadly = store(messages(text())), NOW, Ear(fault=OperationalError())
    with listening(signals.message_received, deadly):
        for _time in range(WebhookPost.MOST_CLAIMS):
            with pytest.raises(OperationalError):
                inbox.work_off(now=now)
            now += inbox.LEASE + timedelta(seconds=1)
        assert inbox.work_off(now=now) == 0
    assert f"webhook post id={post.pk} outcome=last_try" in caplog.text


@pytest.mark.django_db
def test_a_deadly_post_takes_its_neighbours_along_only_once() -> None:
    def die(*, event: MessageReceived, **_news: Any) -> None:
        if event.wamid == "wamid.2":
            raise OperationalError

    posts = [store(messages(text(number))) for number in (1, 2, 3)]
    later = NOW + inbox.LEASE + timedelta(seconds=1)
    with listening(signals.message_received, die):
        for now in (NOW, later, later):
            with suppress(OperationalError):
                inbox.work_off(now=now)
    assert list(WebhookPost.objects.unprocessed()) == [posts[1]]


@pytest.mark.django_db
def test_one_line_is_logged_for_each_post(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    post = store(payload("in-18-many-entries-mixed"))
    inbox.work_off(now=NOW)
    line = f"webhook post id={post.pk} messages=3 statuses=3 changes=1 ignored=0 quarantined=0"
    assert [record.getMessage() for record in caplog.records].count(line) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name",
    [
        "acct-09-user-preferences",
        "acct-10-unknown-field",
        "bad-03-wrong-object",
        "in-21-other-phone-number-id",
        "in-22-smb-message-echo",
    ],
)
def test_what_does_not_concern_us_is_counted_and_nothing_more(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    store(payload(name))
    inbox.work_off(now=NOW)
    assert not InboundMessage.objects.exists()
    assert not QuarantinedItem.objects.exists()
    assert "messages=0 statuses=0 changes=0 ignored=" in caplog.text
    assert "ignored=0" not in caplog.text


# --- one bad item, and its neighbours -----------------------------------------


@pytest.mark.django_db
def test_one_poisoned_entry_among_two_hundred_stops_no_other() -> None:
    store(payload("in-19-200-entries-one-poison"))
    inbox.work_off(now=NOW)
    assert (InboundMessage.objects.count(), StatusEvent.objects.count()) == (99, 100)
    item = QuarantinedItem.objects.get()
    assert (item.path, item.reason) == ("entry[100].changes[0].messages[0]", "not an object")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad-01-truncated", "JSONDecodeError"),
        ("bad-02-top-level-array", "not an object"),
        ("bad-14-invalid-utf8", "UnicodeDecodeError"),
    ],
)
def test_a_body_that_cannot_be_read_is_put_aside_whole(
    name: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    post = store(payload(name))
    inbox.work_off(now=NOW)
    item = QuarantinedItem.objects.get()
    assert (item.post_id, item.path, item.reason) == (post.pk, "", reason)
    post.refresh_from_db()
    assert (post.processed_at, post.error) == (NOW, reason)
    assert [record.levelname for record in caplog.records if "item quarantined" in record.getMessage()] == [
        "ERROR"
    ]


@pytest.mark.django_db
def test_a_fault_of_a_receiver_puts_that_item_aside_with_its_kind_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def stumble(*, event: MessageReceived, **_news: Any) -> None:
        if event.wamid == "wamid.2":
            raise ValueError(f"{event.text} {event.phone}")

    with listening(signals.message_received, stumble):
        store(messages(text(1), text(2), text(3)))
        inbox.work_off(now=NOW)
    assert set(InboundMessage.objects.values_list("wamid", flat=True)) == {"wamid.1", "wamid.3"}
    item = QuarantinedItem.objects.get()
    assert (item.path, item.reason) == ("entry[0].changes[0].messages[1]", "builtins.ValueError")
    assert "reason=builtins.ValueError" in caplog.text


@pytest.mark.django_db
def test_a_fault_of_the_database_within_an_item_is_that_items_fault() -> None:
    def stumble(*, event: MessageReceived, **_news: Any) -> None:
        if event.wamid == "wamid.1":
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1/0")

    with listening(signals.message_received, stumble):
        store(messages(text(1), text(2)))
        inbox.work_off(now=NOW)
    assert InboundMessage.objects.get().wamid == "wamid.2"
    assert QuarantinedItem.objects.get().reason == "django.db.utils.DataError"


@pytest.mark.django_db
def test_a_fault_over_one_receipt_of_many_puts_that_one_aside_and_no_other() -> None:
    def stumble(*, events: Sequence[StatusReceived], **_news: Any) -> list[bool]:
        if any(event.wamid == "wamid.OUT7" for event in events):
            raise ValueError(MARK)
        return [True] * len(events)

    with listening(signals.statuses_received, stumble):
        for first in (1, 6, 11):
            store(statuses(*[status(number) for number in range(first, first + 5)]))
        assert inbox.work_off(now=NOW) == 3
    settled = set(StatusEvent.objects.filter(settled_at=NOW).values_list("wamid", flat=True))
    assert settled == {f"wamid.OUT{number}" for number in range(1, 16)} - {"wamid.OUT7"}
    item = QuarantinedItem.objects.get()
    assert (item.path, item.reason) == ("entry[0].changes[0].statuses[1]", "builtins.ValueError")


@pytest.mark.django_db
def test_what_a_receiver_wrote_before_its_fault_is_undone() -> None:
    def write_and_stumble(**_news: Any) -> None:
        store(b"written by a receiver")
        raise IntegrityError

    with listening(signals.message_received, write_and_stumble):
        store(messages(text()))
        inbox.work_off(now=NOW, limit=1)
    assert WebhookPost.objects.count() == 1
    assert not ConversationWindow.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("lost", [OperationalError, InterfaceError])
def test_without_the_database_the_post_waits_and_goes_on_where_it_stopped(lost: type[Exception]) -> None:
    def lose(*, event: MessageReceived, **_news: Any) -> None:
        if event.wamid == "wamid.2":
            raise lost

    post = store(messages(text(1), text(2), text(3)))
    with listening(signals.message_received, lose), pytest.raises(lost):
        inbox.work_off(now=NOW)
    assert InboundMessage.objects.get().wamid == "wamid.1"
    assert not QuarantinedItem.objects.exists()
    post.refresh_from_db()
    assert post.processed_at is None
    ear = Ear()
    with listening(signals.message_received, ear):
        assert inbox.work_off(now=NOW + inbox.LEASE + timedelta(seconds=1)) == 1
    assert [event.wamid for event in ear.heard] == ["wamid.2", "wamid.3"]


# --- the window -----------------------------------------------------------------


@pytest.mark.django_db
def test_a_message_opens_the_window_for_a_day_from_when_it_was_sent() -> None:
    store(payload("in-01-text"))
    inbox.work_off(now=NOW)
    until = datetime(2026, 12, 2, 12, 0, 1, tzinfo=UTC)
    assert {(window.address, window.open_until) for window in ConversationWindow.objects.all()} == {
        ("584120000001", until),
        ("VE.100000000000000001", until),
    }
    assert ConversationWindow.is_open("+584120000001", at=until - timedelta(seconds=1))
    assert ConversationWindow.is_open("VE.100000000000000001", at=NOW)
    assert not ConversationWindow.is_open("+584120000001", at=until)
    assert not ConversationWindow.is_open("+584240000002", at=NOW)


@pytest.mark.django_db
def test_an_older_message_that_comes_later_does_not_close_the_window_earlier() -> None:
    store(messages(text(1, timestamp="1796126400")))
    store(messages(text(2, timestamp="1796126100")))
    inbox.work_off(now=NOW)
    assert ConversationWindow.objects.get().open_until == SENT + timedelta(hours=24)


@pytest.mark.django_db
def test_a_newer_message_keeps_the_window_open_longer() -> None:
    store(messages(text(1, timestamp="1796126100")))
    store(messages(text(2, timestamp="1796126400")))
    inbox.work_off(now=NOW)
    assert ConversationWindow.objects.get().open_until == SENT + timedelta(hours=24)


@pytest.mark.django_db
def test_a_message_from_the_future_opens_the_window_from_now() -> None:
    store(messages(text(timestamp="1896126400")))
    inbox.work_off(now=NOW)
    assert ConversationWindow.objects.get().open_until == NOW + timedelta(hours=24)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields",
    [
        {"type": "reaction", "reaction": {"emoji": "👍"}},
        {"type": "edit"},
        {"type": "revoke"},
        {"type": "system"},
        {"group_id": "120363000000000000"},
    ],
)
def test_what_may_not_count_as_a_message_opens_no_window(fields: dict[str, Any]) -> None:
    store(messages(text(**fields)))
    inbox.work_off(now=NOW)
    assert InboundMessage.objects.exists()
    assert not ConversationWindow.objects.exists()


# --- receipts -----------------------------------------------------------------


@pytest.mark.django_db
def test_a_receipt_that_is_recognised_is_settled() -> None:
    ear = Ear(answer=True)
    with listening(signals.statuses_received, ear):
        store(payload("st-04-failed-131026"))
        inbox.work_off(now=NOW)
        assert inbox.settle_parked(now=NOW + timedelta(minutes=1)) == 0
    row = StatusEvent.objects.get()
    assert (row.status, row.reference, row.settled_at, row.next_offer_at) == (
        "failed",
        "att_01TESTATTEMPT0000000004",
        NOW,
        None,
    )
    assert row.errors == [
        {"code": 131026, "subcode": None, "details": "(texto inventado) no se pudo entregar"}
    ]
    assert len(ear.heard) == 1


@pytest.mark.django_db
def test_a_receipt_that_nobody_knows_is_parked_and_offered_again() -> None:
    ear = Ear(answer=None)
    with listening(signals.statuses_received, ear):
        store(payload("st-02-sent-then-delivered-opaque"))
        inbox.work_off(now=NOW)
        assert inbox.settle_parked(now=NOW + timedelta(seconds=4)) == 0
        assert len(ear.heard) == 2
        ear.answer = True
        assert inbox.settle_parked(now=NOW + timedelta(seconds=5)) == 2
        assert inbox.settle_parked(now=NOW + timedelta(minutes=1)) == 0
    assert [event.status for event in ear.heard] == ["sent", "delivered"] * 2
    first, again = ear.heard[0], ear.heard[2]
    assert isinstance(again, StatusReceived)
    assert (again.reference, again.wamid, again.at, again.category) == (
        first.reference,
        first.wamid,
        first.at,
        first.category,
    )
    assert set(StatusEvent.objects.values_list("settled_at", flat=True)) == {NOW + timedelta(seconds=5)}


@pytest.mark.django_db
def test_the_offers_become_rarer_and_end_and_the_receipt_stays() -> None:
    ear = Ear(answer=None)
    offered_at = []
    with listening(signals.statuses_received, ear):
        store(payload("st-08-unknown-wamid"))
        inbox.work_off(now=NOW)
        for seconds in range(0, 3600, 5):
            before = len(ear.heard)
            inbox.settle_parked(now=NOW + timedelta(seconds=seconds))
            offered_at += [seconds] * (len(ear.heard) - before)
    assert offered_at == [5, 10, 20, 40, 80, 160, 320, 640, 900]
    row = StatusEvent.objects.get()
    assert (row.settled_at, row.next_offer_at) == (None, None)


@pytest.mark.django_db
def test_the_same_receipt_in_a_later_post_is_offered_again_while_nobody_knows_it() -> None:
    ear = Ear(answer=None)
    with listening(signals.statuses_received, ear):
        store(statuses(status()))
        inbox.work_off(now=NOW)
        ear.answer = True
        store(statuses(status(), status(2)))
        inbox.work_off(now=NOW)
        store(statuses(status(), status(3)))
        inbox.work_off(now=NOW)
    assert [event.wamid for event in ear.heard] == ["wamid.OUT1", "wamid.OUT1", "wamid.OUT2", "wamid.OUT3"]
    assert StatusEvent.objects.filter(wamid="wamid.OUT1").count() == 1


@pytest.mark.django_db
def test_a_fault_over_a_parked_receipt_stops_no_other() -> None:
    def stumble(*, events: Sequence[StatusReceived], **_news: Any) -> list[bool]:
        if any(event.wamid == "wamid.OUT1" for event in events):
            raise ValueError(MARK)
        return [True] * len(events)

    store(statuses(status(1), status(2)))
    inbox.work_off(now=NOW)
    with listening(signals.statuses_received, stumble):
        assert inbox.settle_parked(now=NOW + timedelta(seconds=5)) == 1
    assert StatusEvent.objects.get(settled_at=None).wamid == "wamid.OUT1"


@pytest.mark.django_db
def test_new_kinds_of_receipt_are_kept() -> None:
    store(payload("st-10-unknown-status-values"))
    inbox.work_off(now=NOW)
    assert set(StatusEvent.objects.values_list("status", flat=True)) == {
        "played",
        "warning",
        "deleted",
        "teleported",
    }


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"pricing": {"category": "marketing"}}, "charged_as_marketing"),
        ({"status": "failed", "errors": [{"code": 131050}]}, "charged_as_marketing"),
        ({"status": "failed", "errors": [{"code": 987654}]}, "unknown error code"),
    ],
)
def test_a_receipt_that_somebody_should_see_is_told(
    fields: dict[str, Any], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    store(statuses(status(**fields)))
    inbox.work_off(now=NOW)
    assert [record.levelname for record in caplog.records if line in record.getMessage()] == ["ERROR"]


@pytest.mark.django_db
def test_an_ordinary_receipt_alarms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    store(payload("st-01-sent-v23-conversation"))
    store(payload("in-11-unsupported-edit-revoke"))
    inbox.work_off(now=NOW)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# --- templates and account ------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acct-01-template-approved-as-marketing", ("APPROVED", "MARKETING", "")),
        ("acct-02-template-rejected", ("REJECTED", "UTILITY", "")),
        ("acct-04-template-quality-two-field-names", ("", "", "RED")),
    ],
)
def test_a_decision_of_metas_reaches_the_template_and_the_log(
    name: str, expected: tuple[str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    ear = Ear()
    with listening(signals.template_changed, ear):
        store(payload(name))
        inbox.work_off(now=NOW)
    row = Template.objects.get()
    assert (row.status, row.category, row.quality) == expected
    assert not row.is_usable
    assert {type(event) for event in ear.heard} == {TemplateChanged}
    assert any(record.levelname == "ERROR" for record in caplog.records)


@pytest.mark.django_db
def test_news_of_the_account_are_told_and_an_attack_is_alarmed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ear = Ear()
    with listening(signals.account_changed, ear):
        for name in (
            "acct-06-capability-and-phone-quality",
            "acct-08-alert-and-security",
            "in-24-value-level-errors",
        ):
            store(payload(name))
        inbox.work_off(now=NOW)
    assert [type(event) for event in ear.heard] == [AccountChanged] * 6
    levels = [record.levelname for record in caplog.records if record.getMessage().startswith("account ")]
    assert levels == ["INFO", "INFO", "INFO", "ERROR", "ERROR", "ERROR"]
    assert "event=PIN_RESET_REQUEST urgency=urgent" in caplog.text


# --- again ----------------------------------------------------------------------


def replayed(*options: str) -> str:
    out = StringIO()
    call_command("replay_webhooks", *options, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_a_replay_handles_what_was_put_aside_and_nothing_twice() -> None:
    with listening(signals.message_received, Ear(fault=ValueError())):
        store(messages(text(1)))
        inbox.work_off(now=NOW)
    done = store(messages(text(2)))
    inbox.work_off(now=NOW)
    ear = Ear()
    with listening(signals.message_received, ear):
        assert replayed("--quarantined") == "Avisos procesados: 1.\n"
        assert replayed("--quarantined") == "Avisos procesados: 0.\n"
        assert replayed("--post", str(done.pk)) == "Avisos procesados: 1.\n"
    assert [event.wamid for event in ear.heard] == ["wamid.1"]
    assert not QuarantinedItem.objects.exists()
    assert not WebhookPost.objects.unprocessed().exists()


@pytest.mark.django_db
def test_what_fails_again_stays_aside_once() -> None:
    store(payload("in-19-200-entries-one-poison"))
    inbox.work_off(now=NOW)
    replayed("--quarantined")
    assert QuarantinedItem.objects.count() == 1
    assert (InboundMessage.objects.count(), StatusEvent.objects.count()) == (99, 100)


@pytest.mark.django_db
def test_a_replay_takes_up_what_was_given_up() -> None:
    post = store(messages(text()))
    WebhookPost.objects.filter(pk=post.pk).update(claims=WebhookPost.MOST_CLAIMS)
    assert inbox.work_off(now=NOW) == 0
    assert replayed() == "Avisos procesados: 1.\n"
    assert InboundMessage.objects.exists()


@pytest.mark.django_db
def test_a_replay_leaves_a_post_to_the_worker_who_has_it_and_says_so() -> None:
    post = store(messages(text()))
    WebhookPost.objects.filter(pk=post.pk).update(claimed_until=datetime.now(UTC) + timedelta(minutes=1))
    assert "Sin terminar: 1." in replayed()
    assert not InboundMessage.objects.exists()


@pytest.mark.django_db
def test_a_post_whose_body_was_emptied_is_not_replayed() -> None:
    post = store(payload("in-19-200-entries-one-poison"))
    inbox.work_off(now=NOW)
    WebhookPost.objects.filter(pk=post.pk).update(body=b"")
    assert replayed("--quarantined") == "Avisos procesados: 0.\n"
    assert replayed("--post", str(post.pk)) == "Avisos procesados: 0.\n"
    assert QuarantinedItem.objects.get().path


# --- several workers --------------------------------------------------------------


def at_once(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run the work in threads that start together; what they raised."""
    barrier, faults = threading.Barrier(count), []

    def run(number: int) -> None:
        try:
            barrier.wait(10)
            work(number)
        except BaseException as fault:
            faults.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


@pytest.mark.django_db(transaction=True)
def test_workers_that_start_together_share_no_post_and_no_message() -> None:
    for number in range(12):
        # Each post also repeats the message of its neighbour.
        store(messages(text(number), text(number + 1)))
    ear = Ear()
    counts: list[int] = []
    with listening(signals.message_received, ear):
        faults = at_once(4, lambda _number: counts.append(inbox.work_off(now=NOW)))
    assert faults == []
    assert sum(counts) == 12
    assert sorted(event.wamid for event in ear.heard) == sorted(f"wamid.{number}" for number in range(13))
    assert not QuarantinedItem.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_that_hold_the_same_post_tell_each_item_once() -> None:
    post = store(messages(*[text(number) for number in range(20)]))
    ear = Ear()

    def work(number: int) -> None:
        # The second comes when the lease of the first is over by its clock.
        inbox.work_off(now=NOW + number * (inbox.LEASE + timedelta(seconds=1)), post_id=post.pk)

    with listening(signals.message_received, ear):
        assert at_once(2, work) == []
    assert sorted(event.wamid for event in ear.heard) == sorted(f"wamid.{number}" for number in range(20))
    assert not QuarantinedItem.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_that_settle_at_once_settle_each_receipt_once() -> None:
    store(statuses(*[status(number) for number in range(10)]))
    inbox.work_off(now=NOW)
    ear = Ear(answer=True)
    settled: list[int] = []
    with listening(signals.statuses_received, ear):
        faults = at_once(
            2, lambda _number: settled.append(inbox.settle_parked(now=NOW + timedelta(seconds=5)))
        )
    assert faults == []
    assert sum(settled) == len(ear.heard) == 10


@pytest.mark.django_db
def test_a_thousand_receipts_cost_a_few_queries(django_assert_max_num_queries: Any) -> None:
    for first in range(0, 1000, 25):
        store(statuses(*[status(number) for number in range(first, first + 25)]))
    with listening(signals.statuses_received, Ear(answer=True)), django_assert_max_num_queries(60):
        assert inbox.work_off(now=NOW) == 40
    assert StatusEvent.objects.filter(settled_at=NOW).count() == 1000


@pytest.mark.django_db
def test_the_queries_of_the_queue_use_their_indexes() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    waiting = WebhookPost.objects.claimable(NOW).order_by("pk").explain()
    parked = StatusEvent.objects.parked(NOW).order_by("next_offer_at").explain()
    assert "webhook_post_unprocessed" in waiting
    assert "status_event_parked" in parked


@pytest.mark.django_db
def test_to_replay_a_post_that_does_not_exist_is_an_error():
    with pytest.raises(CommandError, match="No hay ningún aviso 99999"):
        call_command("replay_webhooks", "--post", "99999")
