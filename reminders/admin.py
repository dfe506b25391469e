"""Rules are edited here; what was sent is only looked at."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from appointments import local_time
from appointments.access import doctors_of
from appointments.scoped_admin import ScopedAdmin, ScopedInline
from reminders import call_list_admin, notification_admin  # noqa: F401 (their pages register themselves)
from reminders.models import (
    ConsentEvent,
    ContactOptOut,
    DeliveryAttempt,
    NotificationPreference,
    ReminderDelivery,
    ReminderRule,
    Reply,
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


DO_NOT_SEND = "do_not_send"
"""What stands in the place of the first channel where a rule has none."""
CHANNEL_FIELDS = ("first_channel", "second_channel", "third_channel", "fourth_channel")
"""In the order in which channels are tried; a form shows as many as there are channels to choose."""


class ReminderRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """The order of the channels is that of the selects; an empty list is a sentence of its own."""

    first_channel = forms.ChoiceField(
        label=_("Primer canal"),
        error_messages={"required": _("Elija el primer canal, o «No enviar este recordatorio».")},
    )
    second_channel = forms.ChoiceField(label=_("Si no llega, después"), required=False)
    third_channel = forms.ChoiceField(label=_("y después"), required=False)
    fourth_channel = forms.ChoiceField(label=_("y por último"), required=False)

    class Meta:
        model = ReminderRule
        fields = (
            "doctor", "specialty", "reminder_type", "is_enabled", "offset_minutes", "offset_unit",
            "fallback_after_minutes", "subject_template", "body_template",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = offered_channels(self.instance)
        selects = selects_for(self.instance)
        for name in set(CHANNEL_FIELDS) - set(selects):
            del self.fields[name]
        for name in selects:
            self._offer(name, [("", _("ninguno")), *offered])
        is_new = self.instance._state.adding
        # Whoever makes a rule says where it goes: «do not send» is never what was left untouched.
        unsaid = [("", _("Elija…"))] * is_new
        self._offer("first_channel", [*unsaid, *offered, (DO_NOT_SEND, _("No enviar este recordatorio"))])
        stored = self.instance.channels or [DO_NOT_SEND] * (not is_new)
        self.initial.update(zip(selects, stored, strict=False))

    def _offer(self, name: str, choices: list[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        field.choices = choices

    def clean(self) -> None:
        """Put the channels in their order into the rule, or say what cannot be so."""
        super().clean()
        channels: list[str] = []
        for name in CHANNEL_FIELDS:
            channel = self.cleaned_data.get(name)
            if channel and (why_not := _why_not_after(channels, channel)):
                self.add_error(name, why_not)
            elif channel:
                channels.append(channel)
        if not self.errors:
            self.instance.channels = [] if channels == [DO_NOT_SEND] else channels


def _why_not_after(before: list[str], channel: str) -> str:
    """Why a channel cannot be chosen beneath these; empty when it can."""
    if before == [DO_NOT_SEND]:
        return _now("Arriba dice «No enviar este recordatorio»: deje aquí «ninguno».")
    if channel in before:
        said = _now("%(channel)s ya está más arriba; elija otro canal o «ninguno».")
        return said % {"channel": ChannelName(channel).label}
    return ""


def offered_channels(rule: ReminderRule) -> list[tuple[str, str]]:
    """The channels that can be chosen for a rule, each with its label.

    Also those that are switched off at present: a rule made in a pilot without
    WhatsApp takes it up on the day on which it is switched on.
    """
    on, off = set(settings.REMINDER_CHANNELS), _now("%(channel)s (apagado por ahora)")
    return [
        (name, str(label) if name in on else off % {"channel": label})
        for name, label in ChannelName.choices
        if name in {*on, *settings.CHANNEL_BACKENDS, *rule.channels}
    ]


def selects_for(rule: ReminderRule) -> tuple[str, ...]:
    """The fields of the form, one for each channel that can be chosen; the first is always there."""
    return CHANNEL_FIELDS[: max(1, len(offered_channels(rule)))]


@admin.register(ReminderRule)
class ReminderRuleAdmin(ScopedAdmin):
    """A doctor's own rules, and the defaults for all, which only ops may change."""

    form = ReminderRuleForm
    list_display = ("__str__", "doctor", "specialty", "channel_names", "is_enabled")
    list_filter = ("reminder_type", "is_enabled")
    list_select_related = ("doctor", "specialty")

    @admin.display(description=_("canales"))
    def channel_names(self, rule: ReminderRule) -> str:
        """``WhatsApp, Correo``, in the order in which they are tried."""
        return ", ".join(str(ChannelName(name).label) for name in rule.channels) or str(_("no enviar"))

    def get_fieldsets(self, request: HttpRequest, obj: ReminderRule | None = None) -> Any:
        may_edit = obj is None or self.has_change_permission(request, obj)
        return (
            (None, {"fields": ("doctor", "specialty", "reminder_type", "is_enabled")}),
            (_("Cuándo"), {"fields": ("offset_minutes", "offset_unit")}),
            (
                _("Por dónde"),
                {
                    "fields": (
                        *(selects_for(obj or ReminderRule()) if may_edit else ("channel_names",)),
                        "fallback_after_minutes",
                    ),
                    "description": _("Va por el primer canal; por el siguiente, solo si no llega por ese."),
                },
            ),
            (_("Con qué palabras"), {"fields": ("subject_template", "body_template")}),
        )

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
        (_("Cuándo"), {"fields": ("scheduled_for", "sent_at", "delivered_at", "read_at", "given_up_at")}),
        (_("Por teléfono"), {"fields": ("told_by_phone_at", "told_by_phone_by")}),
        (
            _("Para quien opera el sistema"),
            {
                "classes": ("collapse",),
                "fields": (
                    "sequence", "reminder_type", "offset_minutes", "offset_unit", "address", "useful_until",
                    "next_attempt_at", "attempt", "retry_count", "lease_until", "called_at",
                    "deliver_by", "read_by", "message_id", "error_code", "error_message", "created_at",
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
