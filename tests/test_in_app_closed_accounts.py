"""A patient whose account is closed reads no inbox: another channel, or somebody who calls."""

from __future__ import annotations

from datetime import time, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from appointments import clock
from reminders import call_list, planner
from reminders.channels.base import Undeliverable
from reminders.models import Mark, Notification
from reminders.tick import tick
from tests.factories import MARK, make_appointment, make_patient, make_user, only_rules, soon
from tests.test_in_app import call, make_reminder


@pytest.fixture
def due(settings):
    """Makes a visit whose reminder of two hours before has just fallen due; email and inbox are on."""
    settings.REMINDER_CHANNELS = ["email", "in_app"]
    settings.REMINDER_QUIET_HOURS = (time(0), time(0))

    def make(*channels: str, **patient):
        with transaction.atomic(), connection.cursor() as cursor:
            # A rule acts on moments after it was made: this one stands since long ago.
            cursor.execute("SELECT set_config('amedi.now', '2026-01-01T00:00Z', true)")
            only_rules(-120, channels=list(channels))
        patient = make_patient(phone="", user=make_user(), **patient)
        visit = make_appointment(at=soon(2) - timedelta(minutes=1), patient=patient)
        planner.plan_marked(now=clock.now())
        return visit

    return make


def deactivate(visit) -> None:
    User.objects.filter(pk=visit.patient.user_id).update(is_active=False)


def told(visit) -> dict[str, tuple[str, str]]:
    return {row.channel: (row.status, row.reason) for row in visit.deliveries.all()}


@pytest.mark.django_db(transaction=True)
def test_a_closed_account_is_no_contact_from_the_moment_on_that_it_closes(due):
    visit = due("in_app")
    deactivate(visit)
    planner.plan_marked(now=clock.now())
    assert told(visit) == {"in_app": ("skipped", "no_contact"), "": ("skipped", "no_channel")}
    assert call_list.unreached(clock.now()).get().appointment == visit


@pytest.mark.django_db(transaction=True)
def test_an_account_that_opens_again_gets_its_reminder(due):
    visit = due("in_app")
    deactivate(visit)
    planner.plan_marked(now=clock.now())
    assert told(visit)["in_app"] == ("skipped", "no_contact")
    User.objects.filter(pk=visit.patient.user_id).update(is_active=True)
    tick()
    assert told(visit)["in_app"] == ("delivered", "")
    assert not call_list.unreached(clock.now()).exists()


@pytest.mark.django_db(transaction=True)
def test_an_account_that_closes_after_the_plan_sends_the_mail_instead(due, postmark):
    visit = due("in_app", "email", email=f"ana.{MARK}@example.com")
    deactivate(visit)
    Mark.objects.all().delete()  # the last look must see it by itself
    tick()
    assert told(visit)["in_app"] == ("skipped", "no_contact")
    assert (len(postmark.accepted), Notification.objects.count()) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_an_account_that_closes_after_the_last_look_gets_nothing():
    row, message = make_reminder()
    User.objects.filter(pk=row.patient.user_id).update(is_active=False)
    with pytest.raises(Undeliverable, match="no_inbox"):
        call(message)
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_a_login_marks_nothing():
    user = make_patient(user=make_user()).user
    Mark.objects.all().delete()
    user.last_login = clock.now()
    user.save()
    assert not Mark.objects.exists()
