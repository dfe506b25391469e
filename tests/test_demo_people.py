"""The demonstration's people: who they are, what their logins open, and whose database it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import RequestFactory

from amedi import demo_agenda, demo_people
from amedi.management.commands.demo import AGENDA
from appointments import clock
from appointments.models import Appointment, Doctor
from reminders import planner
from reminders.models import ContactOptOut, ReminderRule
from tests.factories import CARACAS, make_appointment, make_doctor, make_rule, soon

pytestmark = pytest.mark.django_db

MAY = {
    # model: what a doctor and a secretary may do; ops may all of it, where anybody may
    "appointments.Appointment": "view add change delete",
    "appointments.Availability": "view add change delete",
    "appointments.Patient": "view add change",
    "appointments.Doctor": "view",
    "reminders.ReminderRule": "view add change delete",
    "reminders.ReminderDelivery": "view",
    "reminders.DeliveryAttempt": "view",
    "reminders.Reply": "view",
    "reminders.ConsentEvent": "view add",
    "reminders.ContactOptOut": "",
    "whatsapp.WebhookPost": "",
    "whatsapp.InboundMessage": "",
    "auth.User": "",
}


@pytest.mark.parametrize("username", ["doctora-demo", "secretaria-demo"])
@pytest.mark.parametrize("label", MAY)
def test_a_doctor_and_their_secretary_may_do_this_and_no_more(username, label):
    demo_people.make()
    assert rights(User.objects.get(username=username), label) == MAY[label].split()


@pytest.mark.parametrize("label", MAY)
def test_ops_see_everything(label):
    demo_people.make()
    assert "view" in rights(User.objects.get(username="ops-demo"), label)


def rights(user: User, label: str) -> list[str]:
    """What the admin lets the user do with a model."""
    [shown] = [each for model, each in admin.site._registry.items() if model._meta.label == label]
    request = RequestFactory().get("/admin/")
    request.user = user
    verbs = ("view", "add", "change", "delete")
    return [verb for verb in verbs if getattr(shown, f"has_{verb}_permission")(request)]


def test_every_login_that_is_shown_opens_the_admin(client):
    for login in demo_people.make():
        assert client.login(username=login.username, password=login.password)
        assert client.get("/admin/").status_code == 200


def test_each_start_gives_new_passwords_and_nothing_twice(client):
    [old, *_] = demo_people.make()
    [new, *_] = demo_people.make()
    assert old.password != new.password
    assert not client.login(username=old.username, password=old.password)
    assert (Doctor.objects.count(), User.objects.count()) == (2, 4)


def test_a_database_with_other_doctors_is_refused():
    demo_people.make()
    demo_people.refuse_strangers()
    make_doctor()
    with pytest.raises(demo_people.NotADemo, match="no son de la demostración"):
        demo_people.refuse_strangers()


def test_each_start_plans_its_reminders_anew(tmp_path):
    demo_people.make()
    file = tmp_path / "agenda.csv"
    for start in (1, 2, 3):
        demo_people.clear_agenda()
        assert not Appointment.objects.open().exists()
        # All within one minute: the same hours again.
        text = demo_agenda.expand(AGENDA.read_text(), now=clock.now(), zone=CARACAS)
        file.write_text(text)
        call_command("import_agenda", file, consent="demo")
        assert Appointment.objects.open().count() == 15
        assert Appointment.objects.count() == 15 * start
        walker = Appointment.objects.get(external_id="CR-101")
        assert walker.status == "scheduled"
        soon = clock.now() + timedelta(minutes=1)
        assert walker.deliveries.filter(status="pending", scheduled_for__lte=soon).exists()


def test_a_start_takes_back_what_was_tried_in_the_last_one_and_tells_nobody():
    demo_people.make()
    doctor = Doctor.objects.filter(user__username=demo_people.DOCTORS[0].username).get()
    make_rule(-60, doctor=doctor)
    ContactOptOut.objects.create(address="gladys.pena@example.com", channel="email")
    visit = make_appointment(at=soon(48), doctor=doctor)
    demo_people.clear_agenda()
    assert not ReminderRule.objects.filter(doctor__isnull=False).exists()
    assert not ContactOptOut.objects.exists()
    planner.plan_marked(now=clock.now())
    notices = visit.deliveries.filter(reminder_type="cancelacion").values_list("status", "reason")
    assert set(notices) <= {("skipped", "told_directly")}
