"""Whom an event concerns: patient, doctor and place, out of labels, guests and title.

What stands after a label («Paciente: Ana Paz») is certain. Then comes the guest
who is neither the host nor a doctor, and last the title, if it speaks of a visit
or a number shows that somebody is expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from appointments import agenda_cells as cells
from appointments import agenda_text, names
from appointments.agenda_lines import Told

HOME = "+58"
NOBODY = gettext_lazy("no nombra a ningún paciente. Si es una cita, escriba «Paciente: …» en la descripción.")


class NoPatient(ValueError):
    """Nothing in the event says that somebody is expected; the message is one Spanish sentence."""


@dataclass(frozen=True, kw_only=True)
class Guest:
    """One who takes part in an event."""

    name: str
    """Or nothing: many calendars put the address there again."""
    email: str
    phone: str
    is_host: bool

    @property
    def is_doctor(self) -> bool:
        return names.fold(self.name).partition(" ")[0] in names.TITLES


@dataclass(frozen=True, kw_only=True)
class Words:
    """All that an event says freely."""

    title: str
    description: str
    location: str
    labelled: dict[str, str]
    guests: tuple[Guest, ...]
    calendar: str
    """The name of the calendar."""


@dataclass(frozen=True, kw_only=True)
class Who:
    """Whom the event concerns, in the words of appointments.agenda_lines.Line."""

    patient: str
    doctor: str
    hosts: tuple[str, ...]
    specialty: str
    office: str
    location: str
    phone: str
    email: str
    booked_at: datetime | None
    accepts_whatsapp: bool | None
    notes: tuple[str, ...]


def doctor_of(words: Words, told: Told) -> str:
    """The doctor, as far as somebody named them."""
    return words.labelled.get("doctor", "") or told.doctor


def who(words: Words, told: Told) -> Who:
    """Raises NoPatient, and BadCell where it might be one or another."""
    said = words.labelled
    doctor = doctor_of(words, told)
    guests = _patients(words.guests, doctor)
    notes: list[str] = []
    phone = said.get("phone", "") or _phone(words, guests, notes)
    patient = _patient(words, guests, told, has_phone=bool(phone))
    return Who(
        patient=patient,
        doctor=doctor,
        hosts=(*(guest.name for guest in words.guests if guest not in guests), words.calendar),
        specialty=said.get("specialty", ""),
        office=said.get("office", "") or told.office,
        location="" if "office" in said else " · ".join(filter(None, [said.get("location"), words.location])),
        phone=phone,
        email=said.get("email", "") or _email(words, guests, patient),
        booked_at=cells.or_nothing(cells.moment, said.get("booked at", ""), _("Reservada"), notes),
        accepts_whatsapp=cells.or_nothing(
            cells.yes_or_no, said.get("accepts whatsapp", ""), _("Acepta WhatsApp"), notes
        ),
        notes=tuple(notes),
    )


def _patients(guests: Iterable[Guest], doctor: str) -> list[Guest]:
    doctors = names.fold_without_title(doctor)
    return [
        guest
        for guest in guests
        if not (guest.is_host or guest.is_doctor or doctors == names.fold_without_title(guest.name) != "")
    ]


def _patient(words: Words, guests: list[Guest], told: Told, *, has_phone: bool) -> str:
    said = words.labelled
    if "patient" in said:
        name = agenda_text.person(said["patient"])
        return cells.person(f"{name} {said.get('surname', '')}".strip())
    is_visit = agenda_text.speaks_of_a_visit(words.title)
    if is_visit is False:
        raise NoPatient(NOBODY)
    named = {names.fold(guest.name): guest.name for guest in guests if guest.name}
    if len(named) > 1:
        listed = ", ".join(f"«{name}»" for name in named.values())
        raise cells.BadCell(
            _("El evento tiene varios invitados (%s): escriba en la descripción «Paciente: …».") % listed
        )
    if named:
        return cells.person(agenda_text.person(*named.values()))
    name = agenda_text.person_in_title(words.title)
    if name and (is_visit or has_phone or guests or told.titles_are_patients):
        return cells.person(name)
    raise NoPatient(NOBODY)


def _phone(words: Words, guests: list[Guest], notes: list[str]) -> str:
    """A number without a label: the guest's, one in title or place, or the one mobile of the description."""
    for text in (*(guest.phone for guest in guests), words.title):
        if found := [typed for typed, _read in agenda_text.phones_in(text)]:
            return " / ".join(found)
    # A line on land belongs to the place.
    if found := [typed for typed, read in agenda_text.phones_in(words.location) if read.is_mobile]:
        return " / ".join(found)
    # Numbers of other countries are those of a video call.
    mobiles = {
        read.e164: typed
        for typed, read in agenda_text.phones_in(words.description)
        if read.is_mobile and read.e164.startswith(HOME)
    }
    if len(mobiles) > 1:
        notes.append(
            _("La descripción trae varios teléfonos, sin tomar: escriba «Teléfono: …» ante el del paciente.")
        )
    return next(iter(mobiles.values())) if len(mobiles) == 1 else ""


def _email(words: Words, guests: list[Guest], patient: str) -> str:
    theirs = [guest for guest in guests if names.fold(guest.name) == names.fold(patient)] or guests
    if len(theirs) == 1:
        return theirs[0].email
    return next(iter(agenda_text.EMAIL.findall(words.title)), "")
