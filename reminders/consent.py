"""Who agreed to be written to, and how we know."""

from __future__ import annotations

from appointments.models import Patient
from reminders.models import ConsentEvent
from reminders.models.labels import ChannelName

How = ConsentEvent.How


def note_from_agenda(patient: Patient, *, agrees: bool, evidence: str) -> bool:
    """Keep what a clinic's agenda says about WhatsApp; True when that was news.

    An agenda is copied again and again: it never overrides what the patient, or
    the desk for them, has said since.
    """
    last = ConsentEvent.objects.filter(patient=patient).last_words(ChannelName.WHATSAPP).first()
    if last and (last.how != How.IMPORT or last.agrees == agrees):
        return False
    ConsentEvent.objects.create(
        patient=patient, channel=ChannelName.WHATSAPP, agrees=agrees, how=How.IMPORT, evidence=evidence[:300]
    )
    return True
