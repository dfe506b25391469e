"""The agenda's pages for doctors and secretaries. The rules are in booking and access."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from appointments import booking, clock, local_time, phones
from appointments.access import doctors_of
from appointments.agenda_cells import LEAST_MINUTES, MOST_MINUTES
from appointments.agenda_directory import FARTHEST_DAYS
from appointments.booking import Actor
from appointments.models import (
    Appointment,
    AppointmentHistory,
    Availability,
    AvailabilityException,
    Care,
    Doctor,
    Office,
    Patient,
    Specialty,
)
from appointments.scoped_admin import ModelForm, ScopedAdmin, ScopedInline, ScopedRelatedFilter, is_ops


def actor_of(request: HttpRequest) -> Actor:
    """Whoever asked, through the admin."""
    return Actor(source=AppointmentHistory.Source.ADMIN, user_id=request.user.pk)


class OpsEditedAdmin(ScopedAdmin):
    """Everybody may look at their own; only ops change."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_ops(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_ops(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_ops(request.user)


@admin.register(Specialty)
class SpecialtyAdmin(OpsEditedAdmin):
    search_fields = ["name"]


@admin.register(Doctor)
class DoctorAdmin(OpsEditedAdmin):
    list_display = ["name", "title", "user"]
    list_select_related = ["user"]
    search_fields = ["name"]
    filter_horizontal = ["specialties", "offices", "staff"]


@admin.register(Office)
class OfficeAdmin(ScopedAdmin):
    list_display = ["name", "address", "phone", "time_zone"]
    search_fields = ["name", "address"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_ops(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_ops(request.user)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # A corrected zone shifts the visits of every doctor of the office.
        return [] if is_ops(request.user) else ["time_zone"]

    def save_model(self, request: HttpRequest, obj: Office, form: ModelForm, change: bool) -> None:
        with booking.acting(actor_of(request)):
            super().save_model(request, obj, form, change)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except booking.SlotTaken:
            problem = _("No se guardó: con esa zona horaria, dos citas de un mismo médico coincidirían.")
            self.message_user(request, problem, messages.ERROR)
            return HttpResponseRedirect(request.path)


class PatientForm(ModelForm):
    phone = forms.CharField(
        label=gettext_lazy("Teléfono"),
        max_length=100,
        required=False,
        help_text=gettext_lazy(
            "Escríbalo como quiera, por ejemplo 0412-0000001; los de otro país, con + y su código."
        ),
    )

    class Meta:
        model = Patient
        fields = ["full_name", "phone", "email", "time_zone", "user"]

    def clean_phone(self) -> str:
        self.dialled: phones.Phone | None = None
        typed: str = self.cleaned_data["phone"]
        if not typed:
            return ""
        try:
            self.dialled = phones.normalise(typed)
        except phones.NotAPhone as problem:
            raise forms.ValidationError(str(problem)) from None
        return self.dialled.e164


class CareInline(ScopedInline):
    model = Care
    verbose_name_plural = gettext_lazy("médicos que lo atienden")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Without the link, whoever removed it could never bring it back.
        return is_ops(request.user)


@admin.register(Patient)
class PatientAdmin(ScopedAdmin):
    form = PatientForm
    inlines = [CareInline]
    list_display = ["full_name", "phone", "email"]
    list_filter = [("doctors", ScopedRelatedFilter)]
    search_fields = ["full_name", "phone", "email"]
    readonly_fields = ["phone_as_typed"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        shown = ["full_name", "phone", "phone_as_typed", "email", "time_zone"]
        return [*shown, "user"] if is_ops(request.user) else shown

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A patient may be another doctor's too, and messages to them are on record.
        return False

    def save_model(self, request: HttpRequest, obj: Patient, form: Any, change: bool) -> None:
        if "phone" in form.changed_data:
            # The form has put the new number there already.
            obj.phone = form.initial.get("phone", "")
            obj.dial(form.cleaned_data["phone"], typed=form.data.get("phone", ""))
        super().save_model(request, obj, form, change)
        for note in form.dialled.notes if form.dialled else ():
            self.message_user(request, note, messages.WARNING)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        mine = doctors_of(request.user)
        if not Care.objects.filter(patient=form.instance, doctor__in=mine).exists():
            # Or whoever made the patient would not find them again.
            Care.objects.bulk_create(Care(patient=form.instance, doctor=doctor) for doctor in mine)


class SeenVersion(forms.IntegerField):
    """The version of the visit that whoever fills the form in had before their eyes."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class AppointmentForm(ModelForm):
    seen_version = SeenVersion(required=False)

    class Meta:
        model = Appointment
        fields: ClassVar[list[Any]] = [
            "doctor",
            "patient",
            "specialty",
            "office",
            "date",
            "start_time",
            "duration_minutes",
            "modality",
            "video_url",
            "instructions",
            "is_overbooked",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["seen_version"] = self.instance.sequence

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        _require_office_of_the_doctor(self)
        self._require_the_version_that_was_seen()
        self._require_likely_values()
        if not {"doctor", "office", "date", "start_time", "duration_minutes"} <= given.keys():
            return given
        zone = given["office"].zone
        try:
            local_time.require(given["date"], given["start_time"], zone)
        except local_time.DoesNotExist as problem:
            self.add_error("start_time", str(problem))
            return given
        if not given["is_overbooked"] and self._others_at(zone).exists():
            self.add_error("start_time", str(booking.SlotTaken()))
        return given

    def _require_the_version_that_was_seen(self) -> None:
        """Or a form that stood open would silently move the visit back."""
        seen = self.cleaned_data.pop("seen_version", None)
        if self.instance._state.adding or seen is None or seen == self.instance.sequence:
            return
        self.add_error(
            None,
            _(
                "La cita cambió mientras tenía esta página abierta: ahora es el %(date)s, %(hour)s. "
                "Vuelva a abrirla y haga su cambio de nuevo."
            )
            % {
                "date": f"{self.instance.date:%d/%m/%Y}",
                "hour": local_time.as_told(self.instance.start_time),
            },
        )

    def _require_likely_values(self) -> None:
        """The limits of the import: a mistyped year would be told to the patient at once."""
        day, minutes = self.cleaned_data.get("date"), self.cleaned_data.get("duration_minutes")
        is_new_day = "date" in self.changed_data or self.instance._state.adding
        if is_new_day and day is not None and abs((day - clock.now().date()).days) > FARTHEST_DAYS:
            self.add_error("date", _("Esa fecha está a más de dos años de hoy: revise el año."))
        if (
            minutes
            and "duration_minutes" in self.changed_data
            and not LEAST_MINUTES <= minutes <= MOST_MINUTES
        ):
            self.add_error(
                "duration_minutes",
                _("La duración va de %(least)d a %(most)d minutos.")
                % {"least": LEAST_MINUTES, "most": MOST_MINUTES},
            )

    def _others_at(self, zone: Any) -> models.QuerySet[Appointment]:
        given = self.cleaned_data
        starts_at = local_time.instant(given["date"], given["start_time"], zone)
        ends_at = starts_at + timedelta(minutes=given["duration_minutes"])
        return Appointment.objects.overlapping(given["doctor"], starts_at, ends_at).exclude(
            pk=self.instance.pk
        )


def _require_office_of_the_doctor(form: ModelForm) -> None:
    doctor, office = form.cleaned_data.get("doctor"), form.cleaned_data.get("office")
    if doctor and office and not doctor.offices.filter(pk=office.pk).exists():
        form.add_error("office", _("Este médico no atiende en ese consultorio."))


class HistoryInline(ScopedInline):
    model = AppointmentHistory
    fields: ClassVar[list[Any]] = [
        "at",
        "from_status",
        "to_status",
        "old_starts_at",
        "new_starts_at",
        "sequence",
        "actor",
        "source",
    ]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("actor")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


OF_THE_DAY = (booking.check_in, booking.complete, booking.mark_no_show)
"""What can be said of a visit only when its day has come."""


class UnclosedFilter(admin.SimpleListFilter):
    """Silence is not attendance: without a mark no follow-up goes out, and somebody has to set it."""

    title = gettext_lazy("cierre")
    parameter_name = "unclosed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", gettext_lazy("Sin cerrar (pasaron hace un día o más)"))]

    def queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Appointment]
    ) -> models.QuerySet[Appointment]:
        if self.value() != "1":
            return queryset
        return queryset & Appointment.objects.unclosed(clock.now())


@admin.register(Appointment)
class AppointmentAdmin(ScopedAdmin):
    form = AppointmentForm
    inlines = [HistoryInline]
    list_display = ["when", "patient", "doctor", "office", "status"]
    list_display_links = ["when"]
    list_select_related = ["patient", "doctor", "office"]
    list_filter = [
        UnclosedFilter,
        "status",
        "date",
        ("doctor", ScopedRelatedFilter),
        ("office", ScopedRelatedFilter),
        ("specialty", ScopedRelatedFilter),
    ]
    search_fields = ["patient__full_name", "patient__phone", "external_id"]
    ordering = ["-starts_at"]
    autocomplete_fields = ["patient"]
    actions = ["confirm", "check_in", "complete", "mark_no_show", "cancel", "reinstate"]
    facts: ClassVar[list[Any]] = [
        "status",
        "external_id",
        "booked_at",
        "confirmed_at",
        "checked_in_at",
        "completed_at",
        "cancelled_at",
    ]
    fieldsets = [
        (None, {"fields": [*AppointmentForm.Meta.fields, "seen_version"]}),
        (gettext_lazy("Lo que ha pasado"), {"fields": facts}),
    ]

    @admin.display(description=gettext_lazy("cuándo"), ordering="starts_at")
    def when(self, visit: Appointment) -> str:
        return f"{visit.date:%d/%m/%Y}, {local_time.as_told(visit.start_time)}"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        if obj and obj.status not in Appointment.OPEN:
            return [*AppointmentForm.Meta.fields, *self.facts]
        return self.facts

    def save_model(self, request: HttpRequest, obj: Appointment, form: Any, change: bool) -> None:
        given = dict(form.cleaned_data)
        if not change:
            booking.book(id=obj.pk, booked_at=clock.now(), actor=actor_of(request), **given)
            obj.refresh_from_db()
        elif given and form.has_changed() and not booking.reschedule(obj, actor=actor_of(request), **given):
            problem = _("La cita ya no está abierta o ya estaba así: no se cambió nada.")
            self.message_user(request, problem, messages.WARNING)
        if given and local_time.is_repeated(obj.date, obj.start_time, obj.office.zone):
            told = _("Esa hora ocurre dos veces ese día, porque el reloj se atrasa: se tomó la primera.")
            self.message_user(request, told, messages.WARNING)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except booking.SlotTaken:
            # Lost a race. The other visit is there by now, and the form says so.
            return super().changeform_view(request, *args, **kwargs)

    # Deleting means cancelling, and says so.

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_open = obj is None or obj.status in Appointment.OPEN
        return is_open and super().has_delete_permission(request, obj)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        title = {"title": _("Cancelar la cita")}
        return super().delete_view(request, object_id, {**title, **(extra_context or {})})

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        # Nothing goes along: what hangs on the visit stays with it.
        return [str(visit) for visit in objs], {}, set(), []

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for visit in queryset:
            self.log_change(request, visit, _("Cancelada."))

    def delete_model(self, request: HttpRequest, obj: Appointment) -> None:
        booking.cancel(obj, actor=actor_of(request))

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        self.message_user(request, _("La cita del %s quedó cancelada.") % obj_display, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:appointments_appointment_changelist"))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        offered = super().get_actions(request)
        # Its place is taken by cancel().
        offered.pop("delete_selected", None)
        return offered

    @admin.action(description=gettext_lazy("Confirmar"), permissions=["change"])
    def confirm(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.confirm)

    @admin.action(description=gettext_lazy("Anotar que llegó"), permissions=["change"])
    def check_in(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.check_in)

    @admin.action(description=gettext_lazy("Anotar como atendida"), permissions=["change"])
    def complete(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.complete)

    @admin.action(description=gettext_lazy("Anotar que no asistió"), permissions=["change"])
    def mark_no_show(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.mark_no_show)

    @admin.action(
        description=gettext_lazy("Cancelar (no se borra: se puede reponer)"), permissions=["change"]
    )
    def cancel(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.cancel)

    @admin.action(description=gettext_lazy("Reponer las canceladas"), permissions=["change"])
    def reinstate(self, request: HttpRequest, visits: models.QuerySet[Appointment]) -> None:
        self._each(request, visits, booking.reinstate)

    def _each(
        self, request: HttpRequest, visits: models.QuerySet[Appointment], verb: Callable[..., bool]
    ) -> None:
        changed = unchanged = early = 0
        ends_today = clock.now() + timedelta(days=1)
        for visit in visits:
            if verb in OF_THE_DAY and visit.starts_at > ends_today:
                early += 1
                continue
            try:
                if verb(visit, actor=actor_of(request)):
                    changed += 1
                else:
                    unchanged += 1
            except booking.SlotTaken as taken:
                self.message_user(request, f"{visit}: {taken}", messages.ERROR)
        if early:
            told = ngettext(
                "Una cita quedó igual: todavía faltan días para ella.",
                "%d citas quedaron igual: todavía faltan días para ellas.",
                early,
            )
            self.message_user(request, told % early if "%d" in told else told, messages.WARNING)
        if changed:
            done = ngettext("Una cita quedó cambiada.", "%d citas quedaron cambiadas.", changed)
            self.message_user(request, done % changed if "%d" in done else done, messages.SUCCESS)
        if unchanged:
            left = ngettext(
                "Una cita quedó igual: su estado no lo permite, o ya estaba así.",
                "%d citas quedaron igual: su estado no lo permite, o ya estaban así.",
                unchanged,
            )
            self.message_user(request, left % unchanged if "%d" in left else left, messages.WARNING)


class PlacedForm(ModelForm):
    """A row of one doctor at one of their places."""

    def clean(self) -> dict[str, Any]:
        _require_office_of_the_doctor(self)
        return self.cleaned_data


@admin.register(Availability)
class AvailabilityAdmin(ScopedAdmin):
    form = PlacedForm
    list_display = ["doctor", "office", "weekday", "starts", "ends", "slot_minutes"]
    list_select_related = ["doctor", "office"]
    list_filter = [("doctor", ScopedRelatedFilter), ("office", ScopedRelatedFilter)]


@admin.register(AvailabilityException)
class AvailabilityExceptionAdmin(ScopedAdmin):
    form = PlacedForm
    list_display = ["doctor", "kind", "starts_at", "ends_at", "office", "note"]
    list_select_related = ["doctor", "office"]
    list_filter = [("doctor", ScopedRelatedFilter), "kind"]
