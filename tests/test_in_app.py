"""The in-app channel: a reminder stands in the inbox of the patient's user, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from appointments import clock
from reminders.channels.base import Undeliverable
from reminders.channels.in_app import InAppChannel
from reminders.models import Notification, ReminderDelivery
from tests.engine import wait_for
from tests.factories import make_delivery, make_patient, make_user
from tests.mail_values import make_message


def make_reminder() -> tuple[ReminderDelivery, object]:
    """A row of the channel, and the message that it sends."""
    user = make_user()
    row = make_delivery(channel="in_app", attempt=1, patient=make_patient(user=user))
    return row, make_message(to=str(user.pk), reference=row.reference)


def call(message):
    """As the dispatcher does it: in a thread that is nobody else's."""
    channel = InAppChannel()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(channel.call, message, channel.payload(message)).result()


@pytest.mark.django_db(transaction=True)
def test_it_is_delivered_when_it_stands_in_the_inbox():
    row, message = make_reminder()
    receipt = call(message)
    [written] = Notification.objects.all()
    assert (written.user, written.delivery) == (row.patient.user, row)
    assert (written.subject, written.body) == (message.subject, message.text)
    assert written.read_at is None
    assert receipt.is_delivered
    assert receipt.message_id == f"in_app.{written.pk}"


@pytest.mark.django_db(transaction=True)
def test_however_often_it_is_called_it_stands_there_once():
    _row, message = make_reminder()
    receipts = {call(message).message_id for _ in range(3)}
    assert len(receipts) == 1
    assert Notification.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_user_who_is_gone_has_no_inbox():
    row, message = make_reminder()
    row.patient.user.delete()
    with pytest.raises(Undeliverable, match="no_inbox"):
        call(message)
    assert not Notification.objects.exists()


def connections_of_the_database() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        [count] = cursor.fetchone()
    return count


@pytest.mark.django_db(transaction=True)
def test_its_threads_leave_no_connection_behind():
    _row, message = make_reminder()
    with ThreadPoolExecutor(3) as pool:
        channel = InAppChannel()
        for future in [pool.submit(channel.call, message, channel.payload(message)) for _ in range(6)]:
            future.result()
        # While the threads still live: they must not hold what they opened.
        wait_for(lambda: connections_of_the_database() == 1)


@pytest.mark.django_db
def test_a_long_subject_is_cut_and_not_refused():
    _row, message = make_reminder()
    payload = InAppChannel().payload(
        make_message(to=message.to, reference=message.reference, subject="x" * 999)
    )
    assert len(payload["subject"]) == Notification.SUBJECT_LENGTH


def test_an_answer_to_a_tap_is_not_for_the_inbox():
    with pytest.raises(ValueError, match="reminders"):
        InAppChannel().payload(make_message(to="1", reference="r:0c9a5b1e-4c53-4c35-9d0c-111111111111:1"))


@pytest.mark.django_db
def test_what_was_read_once_keeps_its_moment():
    user = make_user()
    Notification.objects.create(user=user, subject="Aviso", body="x")
    first = clock.now()
    assert Notification.objects.for_user(user).mark_read(now=first) == 1
    assert Notification.objects.for_user(user).mark_read(now=clock.now()) == 0
    assert Notification.objects.get().read_at == first
