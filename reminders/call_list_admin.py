"""The call list on the screen: whom no message reached, why, and what they said on the phone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from appointments import clock, local_time
from appointments.admin import actor_of
from appointments.models import Appointment
from appointments.scoped_admin import visible
from reminders import call_list
from reminders.call_list import Answer
from reminders.models import Unreached
from reminders.models.delivery import CALLS_FOR_A_PERSON
from reminders.notification_admin import WatchedAdmin

LIST = "admin:reminders_unreached_changelist"
LABELS: dict[Answer, Promise] = {
    Answer.CONFIRMS: _("Avisado: confirma"),
    Answer.CANCELS: _("Avisado: cancela"),
    Answer.HEARD: _("Avisado"),
}
DONE: dict[Answer, Promise] = {
    Answer.CONFIRMS: _("La cita del %(when)s quedó confirmada."),
    Answer.CANCELS: _("La cita del %(when)s quedó cancelada. Si fue un error, repóngala en la agenda."),
    Answer.HEARD: _("Anotado: el paciente de la cita del %(when)s ya está avisado."),
}


class WhyFilter(admin.SimpleListFilter):
    """Only what brings a patient onto this list."""

    title = _("motivo")
    parameter_name = "motivo"
    silent = "sin-noticia"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:  # noqa: ARG002
        silent = (self.silent, call_list.why(Unreached()))
        return [silent, *((reason, call_list.why(Unreached(reason=reason))) for reason in CALLS_FOR_A_PERSON)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        reason = self.value()
        return queryset if reason is None else queryset.filter(reason="" if reason == self.silent else reason)


@admin.register(Unreached)
class UnreachedAdmin(WatchedAdmin):
    """The call list, the nearest visit first."""

    list_display = ("visit", "patient", "phone", "why", "answers", "doctor", "rule_name")
    list_display_links = None
    list_filter = (WhyFilter, "reminder_type")
    search_fields = ("patient__full_name",)
    ordering = ("appointment__starts_at",)

    class Media:
        css = {"all": ("reminders/call_list.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = visible(call_list.unreached(clock.now()), request.user)
        return rows.select_related("patient", "appointment__doctor", "appointment__office")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        title = {"title": str(self.opts.verbose_name_plural).capitalize()}
        return super().changelist_view(request, {**title, **(extra_context or {})})

    @admin.display(description=_("cita"), ordering="appointment__starts_at")
    def visit(self, row: Unreached) -> str:
        """The visit in the clock of its office, as a link to it."""
        address = reverse("admin:appointments_appointment_change", args=[row.appointment_id])
        return format_html('<a href="{}">{}</a>', address, _told(row.appointment))

    @admin.display(description=_("teléfono"))
    def phone(self, row: Unreached) -> str:
        """To be called at a touch."""
        phone = row.patient.phone or row.patient.phone_as_typed
        return format_html('<a href="tel:{0}">{0}</a>', phone) if phone else str(_("sin teléfono"))

    @admin.display(description=_("motivo"), ordering="reason")
    def why(self, row: Unreached) -> str:
        """Why no message reached them."""
        return call_list.why(row)

    @admin.display(description=_("médico"))
    def doctor(self, row: Unreached) -> str:
        """Whose patient it is."""
        return str(row.appointment.doctor)

    @admin.display(description=_("por teléfono"))
    def answers(self, row: Unreached) -> str:
        """A button for each thing that the patient may have said."""
        buttons = [
            (
                answer.value,
                reverse("admin:reminders_unreached_told", args=[row.pk, answer.value]),
                LABELS[answer],
            )
            for answer in call_list.answers_to(row, clock.now())
        ]
        # The list is a form already, with its token; each button only names another address.
        return format_html_join(
            " ", '<button type="submit" class="button {}" formaction="{}">{}</button>', buttons
        )

    def get_urls(self) -> list[Any]:
        told = self.admin_site.admin_view(self.told)
        return [
            path("<uuid:pk>/llamada/<str:answer>/", told, name="reminders_unreached_told"),
            *super().get_urls(),
        ]

    def told(self, request: HttpRequest, pk: UUID, answer: str) -> HttpResponse:
        """Note what the patient said, and show the list again."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        # Not of the list alone: a second tap comes when the row has left it.
        row = get_object_or_404(visible(Unreached.objects.select_related("appointment"), request.user), pk=pk)
        level, words = _note(row, _answer(answer), request)
        self.message_user(request, words, level)
        return HttpResponseRedirect(reverse(LIST))


def _answer(word: str) -> Answer:
    try:
        return Answer(word)
    except ValueError:
        raise Http404 from None


def _note(row: Unreached, answer: Answer, request: HttpRequest) -> tuple[int, str]:
    """Level and words of what came of it; without a name, for they stay in the browser's history."""
    try:
        is_changed = call_list.note(row, answer, actor=actor_of(request), now=clock.now())
    except call_list.NoLonger:
        row.appointment.refresh_from_db()
        said = _now(
            "No se anotó: la cita cambió y ahora es el %(when)s, «%(status)s». Revísela en la agenda."
        )
        facts = {"when": _told(row.appointment), "status": row.appointment.get_status_display()}
        return messages.WARNING, said % facts
    if not is_changed:
        return messages.INFO, _now("Ya estaba anotado: no se cambió nada.")
    return messages.SUCCESS, str(DONE[answer]) % {"when": _told(row.appointment)}


def _told(visit: Appointment) -> str:
    """``17/09/2026, 10:00 a. m.``, in the clock of its office."""
    return f"{visit.date:%d/%m/%Y}, {local_time.as_told(visit.start_time)}"
