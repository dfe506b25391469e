"""Which patient a line of an agenda means, among those whom its doctor treats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.utils.translation import gettext as _

from appointments import names
from appointments.agenda_directory import Entry, Refused
from appointments.models import Appointment, Doctor, Patient


class PatientBook:
    """Finds, makes and completes patients while one file is taken in.

    Patients of other doctors are neither found nor touched: two doctors who
    treat one person have two records until somebody links them.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._ids: dict[int, dict[str, list[int]]] = {}
        self._phones_in_file: dict[tuple[int, str], set[str]] = defaultdict(set)
        for entry in entries:
            self._phones_in_file[entry.doctor.pk, entry.folded_name].add(entry.phone)
        self._emails_in_file: dict[int, str] = {}

    def of_visit(self, visit: Appointment, entry: Entry, notes: list[str]) -> Patient:
        """The patient of a visit that the line names by its identifier. Raises Refused."""
        patient = visit.patient
        if names.fold(patient.full_name) != entry.folded_name:
            raise Refused(_("El identificador «%s» es de la cita de otro paciente.") % entry.line.external_id)
        self._complete(patient, entry, notes)
        return patient

    def of_line(self, entry: Entry, notes: list[str]) -> Patient:
        """The patient whom the line names, made if need be. Raises Refused."""
        namesakes = self._namesakes(entry)
        patient = self._same_person(namesakes, entry)
        if not patient:
            if namesakes:
                notes.append(
                    _("Ya hay un paciente con ese nombre y otro teléfono: se tomó por otra persona.")
                )
            patient = Patient.objects.create(full_name=entry.line.patient)
            self._ids_of(entry.doctor)[entry.folded_name].append(patient.pk)
        self._complete(patient, entry, notes)
        return patient

    def _same_person(self, namesakes: list[Patient], entry: Entry) -> Patient | None:
        same_phone = [patient for patient in namesakes if entry.phone and patient.phone == entry.phone]
        if same_phone:
            return same_phone[0]
        fitting = [patient for patient in namesakes if not entry.phone or not patient.phone]
        if len(fitting) > 1:
            expected = [patient for patient in fitting if _has_visit(patient, entry)]
            if len(expected) != 1:
                raise Refused(_("Hay varios pacientes con ese nombre: hace falta el teléfono."))
            return expected[0]
        if fitting:
            return fitting[0]
        if len(namesakes) == 1 and _has_visit(namesakes[0], entry):
            # Their phone was corrected; unless the file names both as two people.
            return namesakes[0] if self._may_correct(namesakes[0], entry) else None
        return None

    def _complete(self, patient: Patient, entry: Entry, notes: list[str]) -> None:
        """Take over what the line says and the record lacks or has otherwise; blank erases nothing."""
        before = (patient.phone, patient.email)
        if entry.phone and entry.phone != patient.phone:
            if not patient.phone or self._may_correct(patient, entry):
                patient.dial(entry.phone, typed=entry.line.phone)
            else:
                notes.append(_("Otra línea da otro teléfono al mismo paciente: se conservó aquel."))
        if entry.email:
            # The first line speaks for all, or each import would change it to and fro.
            email = self._emails_in_file.setdefault(patient.pk, entry.email)
            if email != entry.email:
                notes.append(_("Otra línea da otro correo al mismo paciente: se conservó aquel."))
            patient.email = email
        if before != (patient.phone, patient.email):
            patient.save(update_fields=["phone", "phone_as_typed", "wa_id", "bsuid", "email"])

    def _may_correct(self, patient: Patient, entry: Entry) -> bool:
        return patient.phone not in self._phones_in_file[entry.doctor.pk, entry.folded_name]

    def _namesakes(self, entry: Entry) -> list[Patient]:
        ids = self._ids_of(entry.doctor)[entry.folded_name]
        return list(Patient.objects.filter(pk__in=ids).order_by("pk"))

    def _ids_of(self, doctor: Doctor) -> dict[str, list[int]]:
        """The doctor's patients by folded name. A line undone leaves an id here that finds nothing."""
        if doctor.pk not in self._ids:
            self._ids[doctor.pk] = defaultdict(list)
            for pk, name in Patient.objects.filter(doctors=doctor).values_list("pk", "full_name"):
                self._ids[doctor.pk][names.fold(name)].append(pk)
        return self._ids[doctor.pk]


def _has_visit(patient: Patient, entry: Entry) -> bool:
    return Appointment.objects.filter(doctor=entry.doctor, patient=patient, date=entry.date).exists()
