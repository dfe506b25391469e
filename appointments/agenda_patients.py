"""Which patient a line of an agenda means, among those whom its doctor treats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.utils.translation import gettext as _

from appointments import names
from appointments.agenda_directory import Entry, Refused
from appointments.models import Appointment, Patient


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
            raise Refused(
                _(
                    "El identificador «%s» es de la cita de otro paciente: "
                    "corrija el nombre donde esté mal, o cree la cita de nuevo en la agenda."
                )
                % entry.line.external_id
            )
        self._complete(patient, entry, notes)
        return patient

    def of_line(self, entry: Entry, visits: Iterable[Appointment], notes: list[str]) -> Patient:
        """The patient whom the line names, made if need be. Raises Refused.

        ``visits`` are those that the line may mean: they tell namesakes apart.
        """
        ids = self.namesakes(entry)
        namesakes = list(Patient.objects.filter(pk__in=ids).order_by("pk")) if ids else []
        expected = {visit.patient_id for visit in visits if visit.date == entry.date}
        patient = self._same_person(namesakes, expected, entry)
        if patient:
            self._complete(patient, entry, notes)
            return patient
        if namesakes:
            notes.append(_("Ya hay un paciente con ese nombre y otro teléfono: se tomó por otra persona."))
        return self._new(entry)

    def namesakes(self, entry: Entry) -> list[int]:
        """The ids of the doctor's patients of that name. A line undone leaves one that finds nothing."""
        if entry.doctor.pk not in self._ids:
            self._ids[entry.doctor.pk] = defaultdict(list)
            for pk, name in Patient.objects.filter(doctors=entry.doctor).values_list("pk", "full_name"):
                self._ids[entry.doctor.pk][names.fold(name)].append(pk)
        return self._ids[entry.doctor.pk][entry.folded_name]

    def _new(self, entry: Entry) -> Patient:
        patient = Patient(full_name=entry.line.patient, email=entry.email)
        patient.dial(entry.phone, typed=entry.line.phone if entry.phone else "")
        patient.save(force_insert=True)
        self.namesakes(entry).append(patient.pk)
        if entry.email:
            self._emails_in_file[patient.pk] = entry.email
        return patient

    def _same_person(self, namesakes: list[Patient], expected: set[int], entry: Entry) -> Patient | None:
        """``expected`` are the ids of those who have a visit that day."""
        same_phone = [patient for patient in namesakes if entry.phone and patient.phone == entry.phone]
        if same_phone:
            return same_phone[0]
        fitting = [patient for patient in namesakes if not entry.phone or not patient.phone]
        if len(fitting) > 1:
            fitting = [patient for patient in fitting if patient.pk in expected]
            if len(fitting) != 1:
                raise Refused(_("Hay varios pacientes con ese nombre: hace falta el teléfono."))
        if fitting:
            return fitting[0]
        if len(namesakes) == 1 and namesakes[0].pk in expected:
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
