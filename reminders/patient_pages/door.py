"""What all patient's pages have in common: who comes in, and what every answer carries.

The signed token in the address is the whole right to a page. No session, no
cookie: nothing that a browser would send along by itself, and so nothing for a
foreign site to abuse; and nothing that a mail program could refuse to keep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.multipartparser import MultiPartParserError
from django.template.loader import render_to_string
from django.views.decorators.csrf import csrf_exempt

logger = logging.getLogger(__name__)

View = Callable[[HttpRequest, str], HttpResponse]

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
}


class Closed(Exception):
    """The token opens nothing, or nothing any more. The kind is for the log."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def by_link(*methods: str) -> Callable[[View], View]:
    """A page for whoever holds its token; one plain page, always the same, for everybody else."""

    def guard(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def guarded(request: HttpRequest, token: str) -> HttpResponse:
            response = _answer(request, token)
            for name, value in HEADERS.items():
                response[name] = value
            return response

        def _answer(request: HttpRequest, token: str) -> HttpResponse:
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            try:
                return view(request, token)
            except Closed as closed:
                logger.info("link page=%s closed kind=%s", view.__name__, closed.kind)
                return page("patient/closed.html", status=404)

        return guarded

    return guard


def page(template: str, words: dict[str, object] | None = None, *, status: int = 200) -> HttpResponse:
    """A page made without the request: no context processor looks at a session."""
    return HttpResponse(render_to_string(template, words), status=status)


def said(request: HttpRequest, name: str) -> str:
    """A field of the form that was sent; "" where none can be read."""
    try:
        return request.POST.get(name, "")
    except (BadRequest, MultiPartParserError, SuspiciousOperation):
        return ""
