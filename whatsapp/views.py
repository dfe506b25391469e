"""The webhook: Meta's handshake, and its posts."""

from __future__ import annotations

import logging
import re

from django.conf import settings
from django.db import Error as DatabaseFault
from django.http import HttpResponse
from django.utils.crypto import constant_time_compare
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from whatsapp import inbox, signals
from whatsapp.models import WebhookPost
from whatsapp.signature import is_authentic

logger = logging.getLogger(__name__)

LARGEST_POST = 3 * 1024 * 1024
"""Meta's own limit for a webhook body."""


class AnyContent(BaseContentNegotiation):
    """We answer plain text, whatever is asked for."""

    def select_renderer(  # type: ignore[override]
        self,
        request: Request,  # noqa: ARG002
        renderers: list[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class Webhook(APIView):
    """What Meta calls. Stores and answers; the work is done elsewhere."""

    http_method_names = ["get", "post"]
    authentication_classes = ()
    permission_classes = ()
    content_negotiation_class = AnyContent

    def get(self, request: Request) -> HttpResponse:
        """Prove to Meta that the address is ours."""
        challenge = request.query_params.get("hub.challenge", "")
        is_meant = request.query_params.get("hub.mode") == "subscribe" and _knows_token(request)
        # As plain text and of plain characters only: echoed as a page it would be a script.
        if not is_meant or not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", challenge):
            return _answer(403)
        return _answer(200, challenge)

    def post(self, request: Request) -> HttpResponse:
        """Keep the body and say 200, so that Meta does not send it for a week.

        403 for a body that is not Meta's, 413 for one above its own limit, 503
        when it could not be kept: then Meta sends it again.
        """
        if _declares_too_much(request):
            return _answer(413)
        raw: bytes = request.read(LARGEST_POST + 1)
        if len(raw) > LARGEST_POST:
            return _answer(413)
        header = request.headers.get("X-Hub-Signature-256")
        if not is_authentic(raw, header, settings.WHATSAPP_APP_SECRETS):
            logger.warning("webhook post outcome=not_authentic bytes=%d", len(raw))
            return _answer(403)
        try:
            post = inbox.store(raw)
        except DatabaseFault as error:
            logger.error("webhook post outcome=not_stored reason=%s", type(error).__name__)
            return _answer(503)
        if post:
            signals.post_stored.send_robust(sender=WebhookPost, post=post)
        return _answer(200)


def _declares_too_much(request: Request) -> bool:
    declared = request.META.get("CONTENT_LENGTH") or ""
    if not re.fullmatch(r"[0-9]+", declared):
        return False
    return len(declared) > 9 or int(declared) > LARGEST_POST


def _knows_token(request: Request) -> bool:
    given = request.query_params.get("hub.verify_token", "")
    expected = settings.WHATSAPP_VERIFY_TOKEN
    return bool(expected) and constant_time_compare(given, expected)


def _answer(status: int, text: str = "") -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain")
