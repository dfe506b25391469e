"""Over which channels a patient can be reached, and why not over the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.conf import settings

from appointments import phones
from appointments.models import Patient
from reminders.models import ConsentEvent, ContactOptOut, NotificationPreference
from reminders.models.labels import ChannelName
from reminders.timeline import Reason, ReminderType

NEEDS_CONSENT = {ChannelName.WHATSAPP}
"""WhatsApp requires an opt-in (WhatsApp Business Messaging Policy)."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What stands between us and one patient, per channel."""

    addresses: Mapping[str, str]
    opted_out: Collection[str]
    agreed: Collection[str]
    refused: Collection[tuple[str, str]]
    """Channels that the patient switched off for a reminder type."""

    def obstacles(self, reminder_type: ReminderType) -> dict[str, Reason | None]:
        """For each channel None, or the reason why a reminder of this type cannot take it."""
        return {channel: self._obstacle(channel, reminder_type) for channel in ChannelName.values}

    def _obstacle(self, channel: str, reminder_type: ReminderType) -> Reason | None:
        if channel not in settings.REMINDER_CHANNELS:
            return Reason.CHANNEL_OFF
        if not self.addresses.get(channel):
            return Reason.NO_CONTACT
        if channel in self.opted_out or (channel, reminder_type) in self.refused:
            return Reason.OPTED_OUT
        if channel in NEEDS_CONSENT and channel not in self.agreed:
            return Reason.NO_CONSENT
        return None


def of(patients: Collection[Patient]) -> dict[int, Reach]:
    """The reach of each patient, by id; three queries however many they are."""
    ids = [patient.pk for patient in patients]
    addresses = {patient.pk: _addresses(patient) for patient in patients}
    opt_outs = set(
        ContactOptOut.objects.filter(
            address__in={address for by_channel in addresses.values() for address in by_channel.values()}
        ).values_list("channel", "address")
    )
    agreed = {
        (event.patient_id, channel)
        for channel in NEEDS_CONSENT
        for event in ConsentEvent.objects.filter(patient__in=ids).last_words(channel)
        if event.agrees
    }
    refused = NotificationPreference.objects.filter(patient__in=ids, is_enabled=False).values_list(
        "patient_id", "channel", "reminder_type"
    )
    choices: dict[int, set[tuple[str, str]]] = {}
    for patient_id, channel, reminder_type in refused:
        choices.setdefault(patient_id, set()).add((channel, reminder_type))
    return {
        pk: Reach(
            addresses=by_channel,
            opted_out={channel for channel, address in by_channel.items() if (channel, address) in opt_outs},
            agreed={channel for channel in NEEDS_CONSENT if (pk, channel) in agreed},
            refused=choices.get(pk, set()),
        )
        for pk, by_channel in addresses.items()
    }


def remember(patient_id: int, address: str, *, wa_id: str, bsuid: str) -> None:
    """Keep what WhatsApp calls a patient; the number that we dial stays as it is.

    Only while the patient still has the number that we wrote to.
    """
    known = {name: value for name, value in (("wa_id", wa_id), ("bsuid", bsuid)) if value}
    if known:
        Patient.objects.filter(pk=patient_id, phone=address).exclude(**known).update(**known)


def _addresses(patient: Patient) -> dict[str, str]:
    reachable = {ChannelName.EMAIL.value: patient.email, ChannelName.IN_APP.value: str(patient.user_id or "")}
    if _is_mobile(patient.phone):
        reachable[ChannelName.WHATSAPP.value] = patient.phone
    return {channel: address for channel, address in reachable.items() if address}


def _is_mobile(phone: str) -> bool:
    try:
        return phones.normalise(phone).is_mobile
    except phones.NotAPhone:
        return False
