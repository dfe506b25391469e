"""The inbox of whoever works here, and the addresses that lead nowhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet
from django.db.models.functions import JSONObject
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from appointments import clock, local_time
from appointments.models import Patient
from appointments.scoped_admin import ScopedAdmin
from reminders.models import Notification, RetiredContact


class WatchedAdmin(ScopedAdmin):
    """Rows that are looked at; what can be done with them is an action."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


class ReadFilter(admin.SimpleListFilter):
    title = _("leído")
    parameter_name = "leido"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:  # noqa: ARG002
        return [("no", _("Sin leer")), ("si", _("Leídos"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        if self.value() not in ("si", "no"):
            return queryset
        return queryset.filter(read_at__isnull=self.value() == "no")


@admin.register(Notification)
class NotificationAdmin(WatchedAdmin):
    """A user's own; those not yet read come first."""

    list_display = ("subject", "received", "was_read")
    list_filter = (ReadFilter,)
    ordering = (F("read_at").desc(nulls_first=True), "-created_at")
    actions = ("mark_read",)
    fields = readonly_fields = ("subject", "body", "patient", "received", "was_read")

    @admin.display(description=_("recibido"), ordering="created_at")
    def received(self, notification: Notification) -> str:
        """``16/09/2026, 10:00 a. m.``"""
        return _told(notification.created_at)

    @admin.display(description=_("leído"))
    def was_read(self, notification: Notification) -> str:
        """When, or that it waits."""
        return _told(notification.read_at) if notification.read_at else str(_("sin leer"))

    @admin.display(description=_("paciente"))
    def patient(self, notification: Notification) -> str:
        """The patient's file, where an address is mended; a dash where it is about nobody."""
        if notification.about is None:
            return "–"
        return format_html(
            '<a href="{}">{}</a>', _address_of(notification.about.pk), notification.about.full_name
        )

    @admin.action(description=_("Marcar como leídos"), permissions=["view"])
    def mark_read(self, request: HttpRequest, chosen: QuerySet[Notification]) -> None:
        marked = Notification.objects.filter(pk__in=chosen.values("pk")).mark_read(now=clock.now())
        said = ngettext("Un aviso quedó como leído.", "%(count)d avisos quedaron como leídos.", marked)
        self.message_user(request, said % {"count": marked})


@admin.register(RetiredContact)
class RetiredContactAdmin(WatchedAdmin):
    """Addresses of the user's patients to which nothing is sent any more."""

    list_display = ("address", "patients", "why", "since")
    list_filter = ("why",)
    search_fields = ("address",)
    actions = ("use_again",)
    fields = readonly_fields = ("address", "patients", "channel", "why", "since")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        owners = Patient.objects.for_user(request.user).filter(email__iexact=OuterRef("address"))
        names = owners.values(owner=JSONObject(pk="pk", name="full_name"))
        rows: QuerySet[Any] = super().get_queryset(request).annotate(owners=ArraySubquery(names))
        return rows

    @admin.display(description=_("pacientes"))
    def patients(self, contact: Any) -> str:
        """Those of the user's patients who have the address, as links to where it is mended."""
        links = [(_address_of(owner["pk"]), owner["name"]) for owner in contact.owners]
        return format_html_join(", ", '<a href="{}">{}</a>', links) or "–"

    @admin.display(description=_("desde"), ordering="at")
    def since(self, contact: RetiredContact) -> str:
        """``16/09/2026, 10:00 a. m.``"""
        return _told(contact.at)

    @admin.action(description=_("Volver a escribir a estas direcciones"), permissions=["view"])
    def use_again(self, request: HttpRequest, chosen: QuerySet[RetiredContact]) -> None:
        contacts = RetiredContact.objects.filter(pk__in=list(chosen.values_list("pk", flat=True)))
        self.log_deletions(request, contacts)
        count, _deleted = contacts.delete()
        said = ngettext("Una dirección se usa de nuevo.", "%(count)d direcciones se usan de nuevo.", count)
        self.message_user(request, said % {"count": count})


def _address_of(patient_id: int) -> str:
    return reverse("admin:appointments_patient_change", args=[patient_id])


def _told(moment: datetime) -> str:
    local = localtime(moment)
    return f"{local:%d/%m/%Y}, {local_time.as_told(local.time())}"
