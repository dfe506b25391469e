"""Who takes part in the demonstration: two invented doctors, their places and their logins."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.utils.translation import gettext as _

from amedi import local_postgres
from appointments import booking
from appointments.models import Appointment, AppointmentHistory, Doctor, Office, Specialty
from reminders.models import ContactOptOut, NotificationPreference, ReminderRule


class NotADemo(Exception):
    """The database holds doctors who are not the demonstration's."""


@dataclass(frozen=True, kw_only=True)
class DemoDoctor:
    """A doctor as demo/agenda.csv names them."""

    username: str
    title: str
    name: str
    specialties: tuple[str, ...]
    offices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Login:
    """A way into the admin."""

    role: str
    username: str
    password: str


DOCTORS = (
    DemoDoctor(
        username="doctora-demo",
        title="Dra.",
        name="Carmen Ruiz",
        specialties=("Cardiología", "Medicina interna"),
        offices=("Torre Médica Las Mercedes", "Centro Clínico El Ávila"),
    ),
    DemoDoctor(
        username="doctor-demo",
        title="Dr.",
        name="Luis Andrade",
        specialties=("Pediatría",),
        offices=("Torre Médica Las Mercedes", "Policlínica Chacao"),
    ),
)
SECRETARY = "secretaria-demo"
OPS = "ops-demo"
OFFICES = {
    # name: address, phone
    "Torre Médica Las Mercedes": ("Av. Principal de Las Mercedes, piso 3", "+58 212-0000001"),
    "Centro Clínico El Ávila": ("Av. San Juan Bosco, Altamira, piso 5", "+58 212-0000002"),
    "Policlínica Chacao": ("Av. Francisco de Miranda, consultorio 12", "+58 212-0000003"),
}


def refuse_strangers() -> None:
    """Raise NotADemo when somebody's real doctors are here. Works before any migration."""
    if Doctor._meta.db_table not in connection.introspection.table_names():
        return
    ours = [doctor.username for doctor in DOCTORS]
    if Doctor.objects.exclude(user__username__in=ours).exists():
        cure = (
            _("borre la carpeta %s para empezar de nuevo.") % local_postgres.SERVER.home
            if local_postgres.is_wanted()
            else _("use otra, o quite DATABASE_URL para usar una propia.")
        )
        raise NotADemo(_("Esta base de datos tiene médicos que no son de la demostración: %s") % cure)


@transaction.atomic
def make() -> list[Login]:
    """See to it that doctors, places and logins exist; each start gives new passwords."""
    password = secrets.token_hex(4)
    secretary = _user(SECRETARY, password)
    for demo in DOCTORS:
        doctor, _created = Doctor.objects.update_or_create(
            user=_user(demo.username, password), defaults={"title": demo.title, "name": demo.name}
        )
        doctor.specialties.set(Specialty.objects.get_or_create(name=name)[0] for name in demo.specialties)
        doctor.offices.set(_office(name) for name in demo.offices)
        doctor.staff.set([secretary])
    _user(OPS, password, is_superuser=True)
    return [
        Login(role=_("médica"), username=DOCTORS[0].username, password=password),
        Login(role=_("médico"), username=DOCTORS[1].username, password=password),
        Login(role=_("secretaría"), username=SECRETARY, password=password),
        Login(role=_("operaciones"), username=OPS, password=password),
    ]


# Whoever starts the demo anew knows that the last one is over: nobody is told of it.
THE_END = booking.Actor(source=AppointmentHistory.Source.EMAIL)


def clear_agenda() -> None:
    """Begin as the first start did: no visits of earlier ones, no rules or refusals made in them."""
    ReminderRule.objects.filter(doctor__isnull=False).delete()
    ContactOptOut.objects.all().delete()
    NotificationPreference.objects.all().delete()
    visits = Appointment.objects.filter(doctor__user__username__in=[doctor.username for doctor in DOCTORS])
    for visit in visits.open():
        booking.cancel(visit, actor=THE_END)
    visits.exclude(external_id="").exclude(external_id__startswith="anterior-").update(
        external_id=Concat(Value("anterior-"), Cast("pk", CharField()))
    )


def _user(username: str, password: str, *, is_superuser: bool = False) -> User:
    user, _created = User.objects.get_or_create(username=username)
    user.is_staff, user.is_active, user.is_superuser = True, True, is_superuser
    user.set_password(password)
    user.save()
    return user


def _office(name: str) -> Office:
    address, phone = OFFICES[name]
    return Office.objects.get_or_create(name=name, defaults={"address": address, "phone": phone})[0]
