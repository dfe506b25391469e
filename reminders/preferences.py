"""Who wants nothing more on a channel. It is the address that says so, whoever uses it."""

from __future__ import annotations

import logging

from django.db import models, transaction
from django.db.models.functions import Lower

from appointments.models import Patient
from reminders import reach
from reminders.models import ConsentEvent, ContactOptOut

logger = logging.getLogger(__name__)


def is_out(*, address: str, channel: str, patient: Patient) -> bool:
    """Whether the address, or its patient where the channel needs a consent, wants nothing there."""
    return _opt_outs(address, channel).exists() or _has_refused(channel, patient)


def opt_out(*, address: str, channel: str, patient: Patient, evidence: str) -> bool:
    """Write to the address on this channel no more, whoever uses it; True when that was news.

    ``patient`` is the one who said so, and ``evidence`` by what: kept when it changed
    something. A trigger marks the visits of all who use the address.
    """
    with transaction.atomic():
        _take_turns(patient)
        if _opt_outs(address, channel).exists():
            return False
        # In lower case, as reach compares: two spellings are one mailbox.
        _row, is_new = ContactOptOut.objects.get_or_create(address=address.lower(), channel=channel)
        if is_new:
            _note(patient, channel, agrees=False, evidence=evidence)
    return is_new


def opt_in(*, address: str, channel: str, patient: Patient, evidence: str) -> bool:
    """Write to the address on this channel again; True when that was news."""
    with transaction.atomic():
        _take_turns(patient)
        deleted, _by_model = _opt_outs(address, channel).delete()
        is_news = bool(deleted) or _has_refused(channel, patient)
        if is_news:
            _note(patient, channel, agrees=True, evidence=evidence)
    return is_news


def _opt_outs(address: str, channel: str) -> models.QuerySet[ContactOptOut]:
    known_as = ContactOptOut.objects.annotate(known_as=Lower("address"))
    return known_as.filter(channel=channel, known_as=address.lower())


def _has_refused(channel: str, patient: Patient) -> bool:
    """Whether the patient's last word keeps us from a channel that needs their consent."""
    if channel not in reach.NEEDS_CONSENT:
        return False
    last = ConsentEvent.objects.filter(patient=patient).last_words(channel).first()
    return last is not None and not last.agrees


def _take_turns(patient: Patient) -> None:
    Patient.objects.select_for_update(no_key=True).get(pk=patient.pk)


def _note(patient: Patient, channel: str, *, agrees: bool, evidence: str) -> None:
    ConsentEvent.objects.create(
        patient=patient,
        channel=channel,
        agrees=agrees,
        how=ConsentEvent.How.PATIENT,
        evidence=evidence[:300],
    )
    logger.info("patient id=%s channel=%s agrees=%s", patient.pk, channel, agrees)
