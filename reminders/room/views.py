"""The pages of the room, the taps on its cards, and its live stream.

A page that is open asks for its own address again with the header ``X-Room``
and gets what stands between its head and its foot: the same rows, the same
rights, the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST, require_safe

from appointments import clock, local_time
from appointments.booking import Actor
from appointments.models import Appointment, AppointmentHistory, Doctor
from reminders.room import actions, board, stream, waiting

View = Callable[..., HttpResponse]


def screen(view: View) -> View:
    """For whoever is logged in; never kept by a browser, and closed to what is not ours."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            response = view(request, *args, **kwargs)
        else:
            back = request.get_full_path() if request.method == "GET" else reverse("room:board")
            response = redirect_to_login(back, reverse("admin:login"))
        response["Cache-Control"] = "no-store"
        response["Content-Security-Policy"] = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            f"connect-src 'self' {_stream_origin()}; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        return response

    return shown


@require_safe
@screen
def board_page(request: HttpRequest) -> HttpResponse:
    """Today's visits of the doctors whom one may see."""
    doctors, chosen = _doctors(request)
    if not doctors:
        return render(request, "room/nobody.html")
    now = clock.now()
    shown = {
        **_common(now),
        "board": board.read(request.user, doctor=chosen, now=now),
        "doctors": doctors,
        "chosen": chosen,
    }
    return render(request, "room/board_parts.html" if _is_again(request) else "room/board.html", shown)


@require_safe
@screen
def waiting_page(request: HttpRequest) -> HttpResponse:
    """The same day for a screen that strangers see: initials, or turns with ``?ver=turnos``."""
    doctors, chosen = _doctors(request)
    if not doctors:
        return render(request, "room/nobody.html")
    now = clock.now()
    by_turn = request.GET.get("ver") == "turnos"
    shown = {
        **_common(now),
        "queues": waiting.read(request.user, doctor=chosen, by_turn=by_turn, now=now),
        "by_turn": by_turn,
        "is_of_several": len(doctors) > 1 and not chosen,
        "chosen": chosen,
    }
    return render(request, "room/waiting_parts.html" if _is_again(request) else "room/waiting.html", shown)


@require_POST
@screen
def act(request: HttpRequest, visit_id: UUID, action_name: str) -> HttpResponse:
    """One tap on a card. Answers the open page with what came of it; sends any other back to the room."""
    if action_name not in actions.ACTIONS:
        raise Http404
    visit = get_object_or_404(Appointment.objects.for_user(request.user), pk=visit_id)
    actor = Actor(source=AppointmentHistory.Source.ADMIN, user_id=request.user.pk)
    outcome = actions.take(actions.ACTIONS[action_name], visit, actor=actor)
    if _is_again(request):
        return JsonResponse({"sentence": outcome.sentence, "isRefused": outcome.is_refused})
    messages.add_message(
        request, messages.WARNING if outcome.is_refused else messages.SUCCESS, outcome.sentence
    )
    doctor = request.POST.get("medico", "")
    query = f"?medico={doctor}" if doctor.isdecimal() else ""
    return HttpResponseRedirect(f"{reverse('room:board')}{query}#cita-{visit.pk}")


@require_GET
async def events(request: HttpRequest) -> HttpResponseBase:
    """The live stream of one open room. Ends after some minutes; the page comes back."""
    if not isinstance(request, ASGIRequest):
        # Under WSGI each open room would hold a thread of the server for ever.
        return HttpResponse("The stream is served by amedi.asgi.\n", status=503, content_type="text/plain")
    doctors = await _doctor_ids(request)
    if not doctors:
        return HttpResponse(status=403)
    response = StreamingHttpResponse(stream.events(doctors), content_type="text/event-stream")
    response["Cache-Control"] = "no-store, no-transform"
    # Or nginx would gather events before it passes them on.
    response["X-Accel-Buffering"] = "no"
    if request.headers.get("Origin") == _origin(settings.SITE_URL):
        response["Access-Control-Allow-Origin"] = request.headers["Origin"]
        response["Access-Control-Allow-Credentials"] = "true"
    response["Vary"] = "Origin, Cookie"
    return response


@sync_to_async
def _doctor_ids(request: HttpRequest) -> frozenset[str]:
    """The doctors whom one may see; after that the database is let go.

    A request's thread stays as long as its stream, and would keep its connection.
    """
    try:
        doctors = Doctor.objects.for_user(request.user)
        return frozenset(str(pk) for pk in doctors.values_list("pk", flat=True))
    finally:
        connections.close_all()


def _doctors(request: HttpRequest) -> tuple[list[Doctor], Doctor | None]:
    """The doctors whom one may see, and the one that was asked for. Raises Http404 for another's."""
    doctors = list(Doctor.objects.for_user(request.user))
    asked = request.GET.get("medico", "")
    if not asked:
        return doctors, None
    for doctor in doctors:
        if str(doctor.pk) == asked:
            return doctors, doctor
    raise Http404


def _common(now: datetime) -> dict[str, Any]:
    """What every page of the room shows or needs."""
    return {
        "read_at": now,
        "read_at_as_told": local_time.as_told(timezone.localtime(now).time()),
        "stream": f"{_stream_origin()}{reverse('room:events')}",
    }


def _is_again(request: HttpRequest) -> bool:
    """Whether an open page asks, and not a browser for a page."""
    return "X-Room" in request.headers


def _stream_origin() -> str:
    """Where the stream is served, when that is elsewhere; empty when it is this site."""
    origin = _origin(settings.ROOM_STREAM_URL)
    return "" if origin == _origin(settings.SITE_URL) else origin


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
