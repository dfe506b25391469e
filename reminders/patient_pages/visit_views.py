"""The page of a visit: GET and HEAD show, POST acts."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from appointments import booking, clock
from appointments.models import Appointment, AppointmentHistory
from reminders import calendar_file, links
from reminders.patient_pages import visit_words
from reminders.patient_pages.door import Closed, by_link, page

BY_LINK = booking.Actor(source=AppointmentHistory.Source.EMAIL)


@by_link("GET", "HEAD", "POST")
def visit_page(request: HttpRequest, token: str) -> HttpResponse:
    """The visit as it is now; POST confirms the version for which the link was made."""
    now = clock.now()
    if request.method == "POST":
        with transaction.atomic():
            visit, is_stale = _visit(token, now=now, to_change=True)
            if not is_stale and visit_words.can_confirm(visit):
                booking.confirm(visit, actor=BY_LINK)
        return _see(token)
    visit, is_stale = _visit(token, now=now)
    # The buttons carry a link of the version that stands above them.
    return page("patient/visit.html", visit_words.of(visit, is_stale=is_stale, now=now))


@by_link("GET", "HEAD", "POST")
def cancel_page(request: HttpRequest, token: str) -> HttpResponse:
    """Asks once more, since a thumb slips; POST cancels the version for which the link was made."""
    now = clock.now()
    if request.method == "POST":
        with transaction.atomic():
            visit, is_stale = _visit(token, now=now, to_change=True)
            if not is_stale and visit_words.can_cancel(visit, now=now):
                booking.cancel(visit, actor=BY_LINK)
        return _see(token)
    visit, is_stale = _visit(token, now=now)
    if is_stale or not visit_words.can_cancel(visit, now=now):
        return _see(token)
    return page("patient/cancel.html", visit_words.of(visit, is_stale=False, now=now))


@by_link("GET", "HEAD")
def calendar(request: HttpRequest, token: str) -> HttpResponse:  # noqa: ARG001
    """The visit as it is now, for a calendar; a cancelled one takes its entry out."""
    now = clock.now()
    visit, _is_stale = _visit(token, now=now)
    text = calendar_file.render(calendar_file.entry_of(visit), now=now)
    response = HttpResponse(text, content_type="text/calendar; charset=utf-8")
    # Not as an attachment: a phone then offers at once to add it.
    response["Content-Disposition"] = 'inline; filename="cita.ics"'
    return response


def _visit(token: str, *, now: datetime, to_change: bool = False) -> tuple[Appointment, bool]:
    """The visit that a token opens, and whether it has changed since. Raises Closed.

    ``to_change`` locks it until the transaction ends. No ``for_user``: here the
    token is the right, for one visit, in the hands of one patient, until its end.
    """
    link = links.read_visit(token)
    if link is None:
        raise Closed("not_ours")
    visits = Appointment.objects.select_related("office", "doctor", "patient")
    if to_change:
        visits = visits.select_for_update(of=("self",))
    visit = visits.filter(pk=link.appointment_id).first()
    if visit is None:
        raise Closed("no_visit")
    if visit.patient_id != link.patient_id:
        raise Closed("another_patient")
    if visit_words.is_over(visit, now=now):
        raise Closed("over")
    return visit, visit.sequence != link.sequence


def _see(token: str) -> HttpResponse:
    """To the page itself: what came of a form is the visit as it is shown there."""
    return HttpResponseRedirect(reverse("patient:visit", args=[token]))
