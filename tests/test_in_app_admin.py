"""The inbox of whoever works here, and the list of addresses that lead nowhere."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from reminders.models import Notification, RetiredContact
from reminders.retired import Why, retire_email
from tests.factories import MARK, make_doctor, make_patient, make_user

pytestmark = pytest.mark.django_db
INBOX = "admin:reminders_notification_changelist"
RETIRED = "admin:reminders_retiredcontact_changelist"
ADDRESS = f"ana.{MARK}@example.com"


@pytest.fixture
def desk(client):
    """A secretary's session, with a doctor and a patient whose mail bounced."""
    secretary = make_user()
    doctor = make_doctor()
    doctor.staff.add(secretary)
    make_patient(doctor=doctor, email=ADDRESS.upper())
    retire_email(ADDRESS, why=Why.BOUNCED)
    client.force_login(secretary)
    return client


def shown(client, name: str, *arguments: object) -> str:
    response = client.get(reverse(name, args=arguments))
    assert response.status_code == 200
    return response.content.decode()


def act(client, name: str, action: str, *rows):
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    return client.post(reverse(name), chosen, follow=True)


def test_a_user_sees_their_own_notices_and_nobody_elses(desk):
    other = Notification.objects.create(user=make_user(), subject="Para otra persona", body="x")
    page = shown(desk, INBOX)
    assert "No llega el correo de" in page
    assert "Para otra persona" not in page
    assert desk.get(reverse("admin:reminders_notification_change", args=[other.pk])).status_code == 404


def test_a_notice_leads_to_the_patients_file(desk):
    news = Notification.objects.get()
    page = shown(desk, "admin:reminders_notification_change", news.pk)
    assert reverse("admin:appointments_patient_change", args=[news.about_id]) in page
    assert "Pídale otro correo" in page


def test_a_notice_is_marked_as_read_and_not_by_looking(desk):
    news = Notification.objects.get()
    shown(desk, "admin:reminders_notification_change", news.pk)
    news.refresh_from_db()
    assert news.read_at is None
    assert "Un aviso quedó como leído." in act(desk, INBOX, "mark_read", news).content.decode()
    news.refresh_from_db()
    assert news.read_at is not None
    assert "No llega el correo de" not in desk.get(reverse(INBOX), {"leido": "no"}).content.decode()
    assert "No llega el correo de" in desk.get(reverse(INBOX), {"leido": "si"}).content.decode()


def test_nobody_marks_a_notice_of_somebody_else(desk):
    other = Notification.objects.create(user=make_user(), subject="Para otra persona", body="x")
    assert act(desk, INBOX, "mark_read", other).status_code == 404
    other.refresh_from_db()
    assert other.read_at is None


def test_what_is_not_read_comes_first(desk):
    secretary = Notification.objects.get().user
    Notification.objects.filter(user=secretary).update(read_at="2026-09-16T12:00Z")
    Notification.objects.create(user=secretary, subject="Más nuevo, sin leer", body="x")
    page = shown(desk, INBOX)
    assert page.index("Más nuevo, sin leer") < page.index("No llega el correo de")


def test_the_desk_sees_the_dead_addresses_of_its_patients_only(desk):
    strange = f"luis.{MARK}@example.com"
    make_patient(doctor=make_doctor(), email=strange)
    retire_email(strange, why=Why.BOUNCED)
    page = shown(desk, RETIRED)
    assert ADDRESS.lower() in page
    assert strange.lower() not in page
    foreign = RetiredContact.objects.get(address=strange.lower())
    assert act(desk, RETIRED, "use_again", foreign).status_code == 404


def test_of_a_shared_address_only_the_own_patient_is_named(desk):
    stranger = make_patient(doctor=make_doctor(), email=ADDRESS, full_name=f"Luis {MARK} Ajeno")
    assert stranger.full_name not in shown(desk, RETIRED)


def test_an_address_is_used_again_by_an_action_that_is_on_record(desk):
    retired = RetiredContact.objects.get()
    assert "Una dirección se usa de nuevo." in act(desk, RETIRED, "use_again", retired).content.decode()
    assert not RetiredContact.objects.exists()
    assert LogEntry.objects.count() == 1


def test_neither_is_written_by_hand(desk):
    for name in ("notification", "retiredcontact"):
        assert desk.get(reverse(f"admin:reminders_{name}_add")).status_code == 403


def test_whoever_works_for_nobody_sees_neither(client):
    client.force_login(make_user())
    for name in (INBOX, RETIRED):
        assert client.get(reverse(name)).status_code == 403
