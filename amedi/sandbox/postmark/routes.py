"""Which address does what: Postmark's endpoints, the inboxes' pages, and the tests' switches."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from amedi.sandbox.handler import HTML, BadRequestError, StandInHandler
from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.postmark import inbox_pages, letter_page
from amedi.sandbox.postmark.errors import BrokenAnswer, PostmarkError, partly_inactive
from amedi.sandbox.postmark.event_bodies import eastern
from amedi.sandbox.postmark.inboxes import NoSuchMailError
from amedi.sandbox.postmark.mails import AcceptedMail
from amedi.sandbox.postmark.one_click import NoOneClickError

if TYPE_CHECKING:
    from amedi.sandbox.postmark.postmark import Postmark
    from amedi.sandbox.server import SandboxServer

MOST_BYTES = 10 * 1024 * 1024
MOST_BYTES_IN_BATCH = 50 * 1024 * 1024
MOST_IN_BATCH = 500
WAIT_FOR_WEBHOOKS_SECONDS = 10.0
_STATIC = {
    "/inbox.css": ("text/css; charset=utf-8", Path(__file__).with_name("inbox.css")),
    "/inbox.js": ("text/javascript; charset=utf-8", Path(__file__).with_name("inbox.js")),
}
_INBOX = re.compile(r"/inbox/(?P<address>[^/]+)/?")
_LETTER = re.compile(r"/inbox/(?P<address>[^/]+)/(?P<id>[0-9a-f-]{36})/?(?P<verb>html|unsubscribe|scan)?")
_FILE = re.compile(r"/inbox/(?P<address>[^/]+)/(?P<id>[0-9a-f-]{36})/attachments/(?P<place>\d+)")
_BROKEN = b"<html><head><title>Error</title></head><body><center><h1>Error</h1></center></body></html>"


class Handler(StandInHandler):
    """One request, from its address to its answer."""

    server: SandboxServer[Postmark]
    page_policy = (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )

    # --- Routes ---------------------------------------------------------------

    def route(self, method: str) -> None:
        """Answer the request."""
        path = urlsplit(self.path).path
        is_whole = self.read_body(MOST_BYTES_IN_BATCH if path == "/email/batch" else MOST_BYTES)
        try:
            if not is_whole:
                raise BrokenAnswer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            if endpoint := _ENDPOINTS.get((method, path)):
                self._check_headers()
                endpoint(self)
            elif letter := _LETTER.fullmatch(path):
                self._letter(method, unquote(letter["address"]), letter["id"], letter["verb"])
            else:
                self._own(method, path)
        except PostmarkError as error:
            self.answer(error.http_status, error.body())
        except BrokenAnswer as error:
            self.send(error.status, HTML, _BROKEN)
        except (NoSuchMailError, NoOneClickError):
            self._answer_page(HTTPStatus.NOT_FOUND, inbox_pages.nothing_here())
        except BadRequestError as error:
            self.answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _own(self, method: str, path: str) -> None:
        postmark = self.server.sandbox
        if (method, path) == ("GET", "/"):
            self._answer_page(200, inbox_pages.all_inboxes(postmark.inboxes()))
        elif method == "GET" and (inbox := _INBOX.fullmatch(path)):
            address = unquote(inbox["address"])
            self._answer_page(200, inbox_pages.one_inbox(address, postmark.letters(address)))
        elif method == "GET" and (file := _FILE.fullmatch(path)):
            self._answer_attachment(unquote(file["address"]), file["id"], int(file["place"]))
        elif method == "GET" and path in _STATIC:
            content_type, source = _STATIC[path]
            self.send(200, content_type, source.read_bytes())
        elif (method, path) == ("GET", "/sandbox/accepted"):
            self.answer(200, self._books())
        elif (method, path) == ("PATCH", "/sandbox/options"):
            self._change_options()
        else:
            self._answer_page(HTTPStatus.NOT_FOUND, inbox_pages.nothing_here())

    def _change_options(self) -> None:
        try:
            self.server.sandbox.change_by_json(self.read_json())
        except ValueError as error:
            raise BadRequestError(str(error)) from None
        self.answer(200, {"success": True})

    def _books(self) -> dict[str, object]:
        postmark = self.server.sandbox
        return {
            "accepted": [
                {
                    "message_id": mail.message_id,
                    "to": mail.to,
                    "delivery": mail.delivery,
                    "body": mail.body,
                    "at": mail.at.isoformat(),
                }
                for mail in postmark.accepted
            ],
            "per_delivery": postmark.accepted_per_delivery(),
            "refused": [vars(refused) for refused in postmark.refused],
        }

    # --- A mail in an inbox ---------------------------------------------------

    def _letter(self, method: str, address: str, message_id: str, verb: str | None) -> None:
        postmark = self.server.sandbox
        if (method, verb) == ("GET", None):
            user_agent = self.headers.get("User-Agent", "")
            letter = postmark.open(address, message_id, user_agent=user_agent)
            self._answer_page(200, letter_page.one_letter(address, letter))
        elif (method, verb) == ("GET", "html"):
            content = letter_page.html_part(postmark.letter(address, message_id))
            self.send(200, HTML, content, {"Content-Security-Policy": letter_page.MAIL_POLICY})
        elif (method, verb) == ("POST", "unsubscribe"):
            self._check_origin()
            postmark.unsubscribe(address, message_id)
            self._go_back(address, message_id, "baja")
        elif (method, verb) == ("POST", "scan"):
            self._check_origin()
            postmark.scan(address, message_id)
            self._go_back(address, message_id, "escaner")
        else:
            self._answer_page(HTTPStatus.METHOD_NOT_ALLOWED, inbox_pages.nothing_here())

    def _answer_attachment(self, address: str, message_id: str, place: int) -> None:
        attachments = self.server.sandbox.letter(address, message_id).accepted.mail.attachments
        if place >= len(attachments):
            raise NoSuchMailError("This mail has no such attachment.")
        attachment = attachments[place]
        disposition = f"attachment; filename*=UTF-8''{quote(attachment.name, safe='')}"
        headers = {
            "Content-Disposition": disposition,
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        self.send(200, attachment.content_type, attachment.content, headers)

    def _check_origin(self) -> None:
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.headers.get("Host"):
            raise BadRequestError("The buttons of this page are pressed on this page only.")

    def _go_back(self, address: str, message_id: str, place: str) -> None:
        location = f"/inbox/{quote(address, safe='@')}/{message_id}/#{place}"
        self.send(HTTPStatus.SEE_OTHER, HTML, b"", {"Location": location})

    def _answer_page(self, status: int, page: str) -> None:
        self.send(status, HTML, page.encode(), {"Referrer-Policy": "same-origin"})

    # --- Postmark's endpoints -------------------------------------------------

    def _check_headers(self) -> None:
        given = self.headers.get("X-Postmark-Server-Token", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.server.sandbox.options.server_token.encode()):
            raise PostmarkError(10)
        if "application/json" not in self.headers.get("Accept", ""):
            raise PostmarkError(409)
        if self.command == "POST" and self.headers.get_content_type() != "application/json":
            raise PostmarkError(409)

    def _post_mail(self) -> None:
        body = self._postmark_json()
        if not isinstance(body, dict):
            raise PostmarkError(403, "Invalid request field(s): $")
        (outcome,) = self._take([body])
        if isinstance(outcome, PostmarkError):
            raise outcome
        self._finish([outcome], _success(outcome))

    def _post_batch(self) -> None:
        bodies = self._postmark_json()
        if not isinstance(bodies, list) or not all(isinstance(body, dict) for body in bodies):
            raise PostmarkError(403, "Invalid request field(s): $")
        if len(bodies) > MOST_IN_BATCH:
            raise PostmarkError(410)
        outcomes = self._take(bodies)
        accepted = [outcome for outcome in outcomes if isinstance(outcome, AcceptedMail)]
        self._finish(
            accepted,
            [_success(one) if isinstance(one, AcceptedMail) else one.body() for one in outcomes],
        )

    def _search(self) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        self.answer(200, self.server.sandbox.search(query))

    def _take(self, bodies: Sequence[JsonObject]) -> list[AcceptedMail | PostmarkError]:
        postmark = self.server.sandbox
        try:
            outcomes = postmark.take(bodies)
        except BrokenAnswer:
            self.server.stopping.wait(postmark.options.delay_seconds)
            raise
        if not any(isinstance(outcome, AcceptedMail) for outcome in outcomes):
            self.server.stopping.wait(postmark.options.delay_seconds)
        return outcomes

    def _finish(self, accepted: Sequence[AcceptedMail], answer: object) -> None:
        """Answer what was accepted, or lose the answer; post the webhooks in any case."""
        postmark = self.server.sandbox
        options = postmark.options
        with postmark.outbox.busy():
            if options.webhooks_before_answer:
                for webhook in [webhook for mail in accepted for webhook in postmark.send_events(mail)]:
                    webhook.answered.wait(WAIT_FOR_WEBHOOKS_SECONDS)
            try:
                self.server.stopping.wait(options.delay_seconds)
                self._answer_accepted(accepted, answer)
            finally:
                # The mail is under way, whether or not the client still listens.
                if not options.webhooks_before_answer:
                    for mail in accepted:
                        postmark.send_events(mail)

    def _answer_accepted(self, accepted: Sequence[AcceptedMail], answer: object) -> None:
        options = self.server.sandbox.options
        is_lost = any(
            recipient.lower() in options.lose_answer_for
            for mail in accepted
            for recipient in mail.mail.recipients
        )
        if not is_lost:
            self.answer(200, answer)
        elif options.lose_answer == "server_error":
            raise BrokenAnswer(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self.answer_in_part(options.lose_answer, answer)

    def _postmark_json(self) -> object:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise PostmarkError(402) from None


def _success(accepted: AcceptedMail) -> Mapping[str, object]:
    boxes = accepted.mail.to
    return {
        "To": ", ".join(f'"{box.name}" <{box.address}>' if box.name else box.address for box in boxes),
        "SubmittedAt": eastern(accepted.at),
        "MessageID": accepted.message_id,
        "ErrorCode": 0,
        "Message": partly_inactive(list(accepted.inactive)) if accepted.inactive else "OK",
    }


_ENDPOINTS: dict[tuple[str, str], Callable[[Handler], None]] = {
    ("POST", "/email"): Handler._post_mail,
    ("POST", "/email/batch"): Handler._post_batch,
    ("GET", "/messages/outbound"): Handler._search,
}
