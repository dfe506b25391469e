"""Over which channels a patient can be reached, and why not over the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from appointments import phones
from appointments.models import Patient
from reminders.models.labels import ChannelName
from reminders.timeline import Reason, ReminderType

NEEDS_CONSENT = {ChannelName.WHATSAPP}
"""WhatsApp requires an opt-in (WhatsApp Business Messaging Policy)."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What stands between us and one patient, per channel."""

    addresses: Mapping[str, str]
    retired: Collection[str]
    """Channels whose address leads nowhere: mail that bounced, the inbox of an account that is closed."""
    opted_out: Collection[str]
    agreed: Collection[str]
    refused: Collection[tuple[str, str]]
    """Channels that the patient switched off for a reminder type."""

    def obstacles(self, reminder_type: ReminderType) -> dict[str, Reason | None]:
        """For each channel None, or the reason why a reminder of this type cannot take it."""
        return {channel: self.obstacle(channel, reminder_type) for channel in ChannelName.values}

    def obstacle(self, channel: str, reminder_type: ReminderType) -> Reason | None:
        """None, or the reason why a reminder of this type cannot take the channel."""
        if channel not in settings.REMINDER_CHANNELS:
            return Reason.CHANNEL_OFF
        if not self.addresses.get(channel) or channel in self.retired:
            return Reason.NO_CONTACT
        if channel in self.opted_out or (channel, reminder_type) in self.refused:
            return Reason.OPTED_OUT
        if channel in NEEDS_CONSENT and channel not in self.agreed:
            return Reason.NO_CONSENT
        return None


def of(patients: Collection[Patient]) -> dict[int, Reach]:
    """The reach of each patient, by id; one query however many they are."""
    addresses = {patient.pk: _addresses(patient) for patient in patients}
    users = [patient.user_id for patient in patients if patient.user_id]
    facts = _facts(list(addresses), addresses.values(), users)
    refused: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for owner, channel, kind in facts["refused"]:
        refused[owner].add((channel, kind))
    return {
        pk: Reach(
            addresses=by_channel,
            retired=_channels_in(facts["retired"], by_channel),
            opted_out=_channels_in(facts["opted_out"], by_channel),
            agreed={channel for channel in NEEDS_CONSENT if (pk, channel) in facts["agreed"]},
            refused=refused[pk],
        )
        for pk, by_channel in addresses.items()
    }


# All that is asked for each batch that is sent; each part goes by an index of its table.
_FACTS = """
    SELECT 'opted_out', NULL::bigint, channel, lower(address) FROM reminders_contactoptout
    WHERE lower(address) = ANY(%(written)s)
    UNION ALL
    SELECT 'retired', NULL, channel, address FROM reminders_retiredcontact WHERE address = ANY(%(written)s)
    UNION ALL
    SELECT 'retired', NULL, 'in_app', id::text FROM auth_user WHERE id = ANY(%(users)s) AND NOT is_active
    UNION ALL
    SELECT 'agreed', patient_id, channel, '' FROM (
        SELECT DISTINCT ON (channel, patient_id) channel, patient_id, agrees FROM reminders_consentevent
        WHERE patient_id = ANY(%(ids)s) AND channel = ANY(%(needed)s) ORDER BY channel, patient_id, id DESC
    ) last_word WHERE agrees
    UNION ALL
    SELECT 'refused', patient_id, channel, reminder_type FROM reminders_notificationpreference
    WHERE patient_id = ANY(%(ids)s) AND NOT is_enabled
"""


def _facts(
    ids: Sequence[int], addresses: Iterable[Mapping[str, str]], users: Sequence[int]
) -> dict[str, set[tuple[Any, ...]]]:
    """What is known of patients and addresses: contacts in lower case, consents, choices."""
    written = {address.lower() for by_channel in addresses for address in by_channel.values()}
    needed = [str(channel) for channel in NEEDS_CONSENT]
    asked: dict[str, Any] = {"ids": ids, "written": list(written), "needed": needed, "users": users}
    facts: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, asked)
        for what, patient, channel, detail in cursor.fetchall():
            match what:
                case "agreed":
                    facts[what].add((patient, channel))
                case "refused":
                    facts[what].add((patient, channel, detail))
                case _:
                    facts[what].add((channel, detail))
    return facts


def _channels_in(contacts: Collection[tuple[Any, ...]], addresses: Mapping[str, str]) -> set[str]:
    return {channel for channel, address in addresses.items() if (channel, address.lower()) in contacts}


def _addresses(patient: Patient) -> dict[str, str]:
    reachable = {ChannelName.EMAIL.value: patient.email, ChannelName.IN_APP.value: str(patient.user_id or "")}
    if phones.is_mobile(patient.phone):
        reachable[ChannelName.WHATSAPP.value] = patient.phone
    return {channel: address for channel, address in reachable.items() if address}
