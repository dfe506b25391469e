"""Rules are edited here; what was sent is only looked at."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from appointments import clock, local_time
from appointments.access import doctors_of
from appointments.scoped_admin import ScopedAdmin, ScopedInline, visible
from reminders import call_list, notification_admin  # noqa: F401 (its pages register themselves)
from reminders.models import (
    ConsentEvent,
    ContactOptOut,
    DeliveryAttempt,
    NotificationPreference,
    ReminderDelivery,
    ReminderRule,
    Reply,
    Unreached,
)
from reminders.models.labels import ChannelName


class ReadOnlyAdmin(ScopedAdmin):
    """A window: look, and change nothing."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReminderRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    channels = forms.TypedMultipleChoiceField(
        label=_("Canales"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Si el primero no puede, va el siguiente. Ninguno marcado: no enviar."),
    )

    class Meta:
        model = ReminderRule
        fields = (
            "doctor", "specialty", "reminder_type", "is_enabled", "offset_minutes", "offset_unit", "channels",
            "subject_template", "body_template",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What cannot be sent yet is not offered; what a rule names already stays.
        offered = {*settings.CHANNEL_BACKENDS, *self.instance.channels}
        field = self.fields.get("channels")
        if isinstance(field, forms.TypedMultipleChoiceField):
            field.choices = [choice for choice in ChannelName.choices if choice[0] in offered]


@admin.register(ReminderRule)
class ReminderRuleAdmin(ScopedAdmin):
    """A doctor's own rules, and the defaults for all, which only ops may change."""

    form = ReminderRuleForm
    list_display = ("__str__", "doctor", "specialty", "channel_names", "is_enabled")
    list_filter = ("reminder_type", "is_enabled")
    list_select_related = ("doctor", "specialty")
    fieldsets = (
        (None, {"fields": ("doctor", "specialty", "reminder_type", "is_enabled")}),
        (_("Cuándo"), {"fields": ("offset_minutes", "offset_unit")}),
        (_("Por dónde"), {"fields": ("channels",)}),
        (_("Con qué palabras"), {"fields": ("subject_template", "body_template")}),
    )

    @admin.display(description=_("canales"))
    def channel_names(self, rule: ReminderRule) -> str:
        """``WhatsApp, Correo``, in the order in which they are tried."""
        return ", ".join(str(ChannelName(name).label) for name in rule.channels) or str(_("no enviar"))

    def has_change_permission(self, request: HttpRequest, obj: ReminderRule | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: ReminderRule | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_edit(request, obj)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        doctor = form.base_fields.get("doctor")
        if doctor and not request.user.is_superuser:
            # A default for all is not theirs to make.
            doctor.required = True
            doctor.help_text = _(
                "De quién es la regla. Las suyas de un tipo reemplazan a todas las generales de ese tipo."
            )
        return form


def _may_edit(request: HttpRequest, rule: ReminderRule | None) -> bool:
    """Defaults belong to ops; a doctor's rules to the doctor and their staff."""
    if rule is None or request.user.is_superuser:
        return True
    return rule.doctor_id is not None and doctors_of(request.user).filter(pk=rule.doctor_id).exists()


class DeliveryAttemptInline(ScopedInline):
    model = DeliveryAttempt
    can_delete = False
    fields = readonly_fields = ("number", "called_at", "outcome", "error_code", "error_message")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ReminderDelivery)
class ReminderDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("moment", "patient", "status", "reason", "visit", "channel", "rule_name")
    list_filter = ("status", "channel", "reminder_type", "reason")
    list_select_related = ("patient", "appointment__office")
    search_fields = ("patient__full_name",)
    inlines = (DeliveryAttemptInline,)
    fieldsets = (
        (None, {"fields": ("appointment", "patient", "rule_name", "channel", "status", "reason")}),
        (_("Cuándo"), {"fields": ("scheduled_for", "sent_at", "delivered_at", "read_at")}),
        (
            _("Para quien opera el sistema"),
            {
                "classes": ("collapse",),
                "fields": (
                    "sequence", "reminder_type", "offset_minutes", "offset_unit", "address", "useful_until",
                    "next_attempt_at", "attempt", "retry_count", "lease_until", "called_at", "message_id",
                    "error_code", "error_message", "created_at",
                ),
            },
        ),
    )  # fmt: skip

    @admin.display(description=_("prometido para"), ordering="scheduled_for")
    def moment(self, delivery: ReminderDelivery) -> str:
        """When it goes, in the clock of the office: ``16/09/2026, 10:00 a. m.``."""
        local = delivery.scheduled_for.astimezone(delivery.appointment.office.zone)
        return f"{local:%d/%m/%Y}, {local_time.as_told(local.time())}"

    @admin.display(description=_("cita"), ordering="appointment__starts_at")
    def visit(self, delivery: ReminderDelivery) -> str:
        """The visit in the clock of its office."""
        visit = delivery.appointment
        return f"{visit.date:%d/%m/%Y}, {local_time.as_told(visit.start_time)}"


@admin.register(Unreached)
class UnreachedAdmin(ReadOnlyAdmin):
    """The call list: whom no message reached, and why. Nearest visit first."""

    list_display = ("visit", "patient", "phone", "doctor", "reason", "rule_name")
    list_display_links = None
    list_filter = ("reason", "reminder_type")
    search_fields = ("patient__full_name",)
    ordering = ("appointment__starts_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = visible(call_list.unreached(clock.now()), request.user)
        return rows.select_related("patient", "appointment__doctor", "appointment__office")

    @admin.display(description=_("cita"), ordering="appointment__starts_at")
    def visit(self, row: Unreached) -> str:
        """The visit in the clock of its office, as a link to it."""
        visit = row.appointment
        return format_html(
            '<a href="{}">{}</a>',
            reverse("admin:appointments_appointment_change", args=[visit.pk]),
            f"{visit.date:%d/%m/%Y}, {local_time.as_told(visit.start_time)}",
        )

    @admin.display(description=_("teléfono"))
    def phone(self, row: Unreached) -> str:
        """To be called at a touch."""
        phone = row.patient.phone or row.patient.phone_as_typed
        return format_html('<a href="tel:{0}">{0}</a>', phone) if phone else str(_("sin teléfono"))

    @admin.display(description=_("médico"))
    def doctor(self, row: Unreached) -> str:
        """Whose patient it is."""
        return str(row.appointment.doctor)


@admin.register(Reply)
class ReplyAdmin(ReadOnlyAdmin):
    list_display = ("scheduled_for", "patient", "says", "status", "reason")
    list_filter = ("status", "says")
    list_select_related = ("patient",)
    inlines = (DeliveryAttemptInline,)


@admin.register(DeliveryAttempt)
class DeliveryAttemptAdmin(ReadOnlyAdmin):
    list_display = ("called_at", "delivery", "reply", "number", "outcome", "error_code")
    list_filter = ("outcome",)
    list_select_related = ("delivery", "reply")


@admin.register(NotificationPreference)
class NotificationPreferenceAdmin(ScopedAdmin):
    list_display = ("patient", "reminder_type", "channel", "is_enabled")
    list_filter = ("reminder_type", "channel", "is_enabled")
    list_select_related = ("patient",)
    autocomplete_fields = ("patient",)


@admin.register(ConsentEvent)
class ConsentEventAdmin(ScopedAdmin):
    """Only ever added to: a new word is a new line."""

    list_display = ("at", "patient", "channel", "agrees", "how", "evidence")
    list_filter = ("channel", "agrees", "how")
    list_select_related = ("patient",)
    autocomplete_fields = ("patient",)
    exclude = ("how", "recorded_by")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ConsentEvent, form: Any, change: bool) -> None:
        obj.how = ConsentEvent.How.DESK
        obj.recorded_by_id = request.user.pk
        super().save_model(request, obj, form, change)


@admin.register(ContactOptOut)
class ContactOptOutAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Of a number and not of a patient: for ops, since it may be a stranger's."""

    list_display = ("address", "channel", "at")
    list_filter = ("channel",)
    search_fields = ("address",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)
