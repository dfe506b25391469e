"""The page behind the unsubscribe link: GET and HEAD show, POST acts."""

from __future__ import annotations

from typing import TypedDict

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from appointments.models import Patient
from reminders import links, preferences
from reminders.models import ReminderDelivery
from reminders.models.labels import ChannelName
from reminders.patient_pages.door import Closed, by_link, page, said


class _Whom(TypedDict):
    """For whom a choice is made, as the verbs take it."""

    address: str
    channel: str
    patient: Patient


@by_link("GET", "HEAD", "POST")
def preferences_page(request: HttpRequest, token: str) -> HttpResponse:
    """Whether we write to the address that got the message; POST changes that.

    The link does not end with the visit: who wants nothing more may say so late.
    """
    delivery = _delivery(token)
    whom = _Whom(address=delivery.address, channel=delivery.channel, patient=delivery.patient)
    if request.method != "POST":
        shown = {
            "page": request.path,
            "channel": delivery.channel,
            "address": mask(delivery.address, delivery.channel),
            "is_out": preferences.is_out(**whom),
        }
        return page("patient/preferences.html", shown)
    # A mail program, without a page: no redirect and no cookie (RFC 8058).
    if said(request, "List-Unsubscribe") == "One-Click":
        preferences.opt_out(**whom, evidence=_evidence(_("Un clic en el programa de correo"), delivery))
        return HttpResponse(_("Listo: no le escribiremos más."), content_type="text/plain; charset=utf-8")
    match said(request, "quiere"):
        case "baja":
            preferences.opt_out(**whom, evidence=_evidence(_("Botón «No recibir más»"), delivery))
        case "volver":
            preferences.opt_in(**whom, evidence=_evidence(_("Botón «Volver a recibirlos»"), delivery))
    return HttpResponseRedirect(reverse("patient:preferences", args=[token]))


def _delivery(token: str) -> ReminderDelivery:
    """The message that a token names. No ``for_user``: here the token is the right. Raises Closed."""
    pk = links.read_preferences(token)
    if pk is None:
        raise Closed("not_ours")
    delivery = ReminderDelivery.objects.select_related("patient").filter(pk=pk).exclude(address="").first()
    if delivery is None:
        raise Closed("no_message")
    return delivery


def _evidence(click: str, delivery: ReminderDelivery) -> str:
    return _("%(click)s, por el enlace del envío %(delivery)s") % {"click": click, "delivery": delivery.pk}


def mask(address: str, channel: str) -> str:
    """As much of an address as its owner needs to know which one is meant."""
    match channel:
        case ChannelName.EMAIL:
            name, _at, host = address.rpartition("@")
            return f"{name[:1]}•••@{host}"
        case ChannelName.WHATSAPP:
            return f"•••{address[-2:]}"
        case _:
            return ""
