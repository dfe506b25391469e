"""What goes wrong is said in Spanish, also where Django has its own English words."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_appointment, make_doctor, make_user


@pytest.mark.django_db
def test_a_foreign_visit_and_an_address_that_does_not_exist_are_not_here(settings):
    settings.DEBUG = False
    doctor = make_doctor()
    doctor.staff.add(user := make_user())
    client = Client()
    client.force_login(user)
    foreign = reverse("admin:appointments_appointment_change", args=[make_appointment().pk])
    for address in ("/no-hay/", foreign):
        response = client.get(address)
        assert response.status_code in (403, 404)
        assert 'lang="es"' in response.content.decode()
        assert "Not Found" not in response.content.decode()


@pytest.mark.parametrize("code", ["400", "403", "404", "500"])
def test_each_page_stands_alone(code):
    from django.template.loader import render_to_string

    page = render_to_string(f"{code}.html")
    assert 'lang="es"' in page and "<h1>" in page
