"""An address that leads nowhere: used by nobody any more, and told to those who can mend it."""

from __future__ import annotations

import logging

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from appointments.models import Patient
from reminders.channels.base import Undeliverable
from reminders.models import Notification, RetiredContact
from reminders.models.labels import ChannelName

logger = logging.getLogger(__name__)
Why = RetiredContact.Why


class DeadAddress(Undeliverable):
    """The provider says that this address leads nowhere."""

    def __init__(self, code: str, detail: str = "", *, why: RetiredContact.Why) -> None:
        super().__init__(code, detail)
        self.why = why


def retire_email(address: str, *, why: RetiredContact.Why) -> bool:
    """Write to the address no more, and tell whoever acts for a doctor of a patient who has it.

    Until it is corrected in the patient's file, or the entry is deleted. True
    when that was news; to repeat it changes nothing and tells nobody twice.
    """
    with transaction.atomic():
        contact, is_new = RetiredContact.objects.get_or_create(
            address=address.lower(), channel=ChannelName.EMAIL, defaults={"why": why}
        )
        if is_new:
            Notification.objects.bulk_create(_news(address, why))
    if is_new:
        logger.warning("contact id=%s channel=email retired why=%s", contact.pk, why)
    return is_new


def _said(why: RetiredContact.Why) -> str:
    words = {
        Why.BOUNCED: _("rebotó, porque no existe o ya no recibe mensajes"),
        Why.INACTIVE: _("el proveedor de correo ya no le escribe, porque rebotó o se quejó antes"),
        Why.INVALID: _("no está bien escrita"),
    }
    return words[why]


def _news(address: str, why: RetiredContact.Why) -> list[Notification]:
    users = get_user_model()._default_manager.filter(is_active=True)
    return [
        Notification(
            user_id=user.pk,
            about=patient,
            subject=_("No llega el correo de %(patient)s") % {"patient": patient.full_name},
            body=_(
                "No se pudo escribir a %(address)s, el correo de %(patient)s: %(why)s.\n\n"
                "Esa dirección ya no se usará. Los recordatorios irán por otro canal, si lo hay; si no, "
                "verá al paciente en «Pacientes por llamar». Pídale otro correo y corríjalo en su ficha."
            )
            % {"address": address, "patient": patient.full_name, "why": _said(why)},
        )
        for patient in Patient.objects.filter(email__iexact=address)
        for user in users.filter(Q(doctor__patients=patient) | Q(works_for__patients=patient)).distinct()
    ]
