"""Which address does what: Meta's two endpoints, the phone's page, and the tests' switches."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.handler import HTML, BadRequestError, StandInHandler
from amedi.sandbox.json_shapes import JsonObject
from amedi.sandbox.message_rules import BSUID, PHONE
from amedi.sandbox.messages import AcceptedMessage, canonical, is_bsuid, wa_id
from amedi.sandbox.phones import NothingToTapError
from amedi.sandbox.template_list import template_page

if TYPE_CHECKING:
    from amedi.sandbox.sandbox import Sandbox
    from amedi.sandbox.server import SandboxServer

PAGE = Path(__file__).with_name("phone.html")
MOST_BYTES = 4 * 1024 * 1024
WAIT_FOR_WEBHOOKS_SECONDS = 10.0
_GRAPH = re.compile(r"/v\d+\.\d+/(?P<node>[^/]+)/(?P<edge>messages|message_templates)")
_PHONE = re.compile(r"/phone/(?P<number>[^/]+)(?:/(?P<verb>messages|read|tap|text))?")


class Handler(StandInHandler):
    """One request, from its address to its answer."""

    server: SandboxServer[Sandbox]
    page_policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
        "connect-src 'self'; frame-ancestors 'none'"
    )

    # --- Routes ---------------------------------------------------------------

    def route(self, method: str) -> None:
        self.read_body(MOST_BYTES)
        path = unquote(urlsplit(self.path).path)
        try:
            if graph := _GRAPH.fullmatch(path):
                self._graph(method, graph["node"], graph["edge"])
            elif phone := _PHONE.fullmatch(path):
                self._phone(method, phone["number"], phone["verb"])
            else:
                self._own(method, path)
        except GraphError as error:
            self.answer(error.http_status, error.body())
        except NothingToTapError as error:
            self.answer(HTTPStatus.NOT_FOUND, {"error": str(error)})
        except BadRequestError as error:
            self.answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _own(self, method: str, path: str) -> None:
        sandbox = self.server.sandbox
        if (method, path) == ("GET", "/"):
            self._answer_page()
        elif (method, path) == ("GET", "/phones"):
            self.answer(200, {"phones": sandbox.phones()})
        elif (method, path) == ("GET", "/sandbox/accepted"):
            self.answer(200, self._books())
        elif (method, path) == ("PATCH", "/sandbox/options"):
            self._change_options()
        elif path.startswith("/v"):
            raise GraphError(2500)
        else:
            self.answer(HTTPStatus.NOT_FOUND, {"error": "There is nothing at this address."})

    def _change_options(self) -> None:
        try:
            self.server.sandbox.change_by_json(self.read_json())
        except ValueError as error:
            raise BadRequestError(str(error)) from None
        self.answer(200, {"success": True})

    def _phone(self, method: str, number: str, verb: str | None) -> None:
        sandbox = self.server.sandbox
        number = canonical(number)
        if not PHONE.fullmatch(number) and not BSUID.fullmatch(number):
            raise BadRequestError("This is no phone number.")
        if (method, verb) == ("GET", None):
            self._answer_page()
        elif (method, verb) == ("GET", "messages"):
            self.answer(200, {"number": number, "messages": sandbox.conversation(number)})
        elif (method, verb) == ("POST", "read"):
            self.read_json()
            sandbox.open_phone(number)
            self.answer(200, {"success": True})
        elif (method, verb) == ("POST", "tap"):
            self.answer(200, {"wamid": self._tap(number, self.read_json())})
        elif (method, verb) == ("POST", "text"):
            text = self.read_json().get("text")
            if not isinstance(text, str) or not text.strip():
                raise BadRequestError("text must not be empty.")
            self.answer(200, {"wamid": sandbox.write(number, text)})
        else:
            self.answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "Not this way."})

    def _tap(self, number: str, asked: JsonObject) -> str:
        wamid, payload, index = asked.get("wamid"), asked.get("payload"), asked.get("index")
        if not isinstance(wamid, str) or (payload is None) == (index is None):
            raise BadRequestError("A tap needs wamid, and either index or payload.")
        if isinstance(payload, str):
            return self.server.sandbox.tap(number, wamid=wamid, payload=payload)
        if isinstance(index, int):
            return self.server.sandbox.tap(number, wamid=wamid, index=index)
        raise BadRequestError("index must be a whole number, payload a text.")

    def _books(self) -> dict[str, object]:
        sandbox = self.server.sandbox
        return {
            "accepted": [
                {
                    "wamid": message.wamid,
                    "to": message.to,
                    "reference": message.reference,
                    "body": message.body,
                    "at": message.at.isoformat(),
                }
                for message in sandbox.accepted
            ],
            "per_delivery": sandbox.accepted_per_delivery(),
            "refused": [vars(refused) for refused in sandbox.refused],
        }

    # --- Meta's endpoints -----------------------------------------------------

    def _graph(self, method: str, node: str, edge: str) -> None:
        options = self.server.sandbox.options
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, f"Bearer {options.access_token}".encode()):
            raise GraphError(190, "Invalid OAuth access token - Cannot parse access token")
        owner = options.phone_number_id if edge == "messages" else options.business_account_id
        if node != owner or (method, edge) not in _METHODS:
            raise GraphError(
                100,
                f"Unsupported {method.lower()} request. Object with ID '{node}' does not exist, cannot be "
                "loaded due to missing permissions, or does not support this operation.",
                subcode=33,
                kind="GraphMethodException",
            )
        _METHODS[method, edge](self)

    def _post_message(self) -> None:
        sandbox = self.server.sandbox
        options = sandbox.options
        try:
            body = self._graph_json()
            accepted = sandbox.take(body)
        except GraphError as error:
            self.server.stopping.wait(options.delay_seconds)
            self.answer(error.http_status, error.body())
            return
        with sandbox.outbox.busy():
            if options.webhooks_before_answer:
                for webhook in sandbox.send_receipts(accepted):
                    webhook.answered.wait(WAIT_FOR_WEBHOOKS_SECONDS)
            try:
                self.server.stopping.wait(options.delay_seconds)
                self._answer_accepted(accepted)
            finally:
                # The message is under way, whether or not the client still listens.
                if not options.webhooks_before_answer:
                    sandbox.send_receipts(accepted)

    def _answer_accepted(self, accepted: AcceptedMessage) -> None:
        options = self.server.sandbox.options
        contact = {"input": accepted.to}
        contact |= {"user_id": accepted.to} if is_bsuid(accepted.to) else {"wa_id": wa_id(accepted.to)}
        answer = {
            "messaging_product": "whatsapp",
            "contacts": [contact],
            "messages": [{"id": accepted.wamid, "message_status": "accepted"}],
        }
        if accepted.to in options.lose_answer_for:
            self.answer_in_part(options.lose_answer, answer)
        else:
            self.answer(200, answer)

    def _create_template(self) -> None:
        template = self.server.sandbox.create_template(self._graph_json())
        self.answer(
            200, {"id": template.template_id, "status": template.status, "category": template.category}
        )

    def _list_templates(self) -> None:
        sandbox = self.server.sandbox
        parts = urlsplit(self.path)
        self.answer(
            200,
            template_page(
                sandbox.options.known_templates,
                dict(parse_qsl(parts.query)),
                address=f"{sandbox.url}{parts.path}",
            ),
        )

    # --- Reading and writing --------------------------------------------------

    def _graph_json(self) -> JsonObject:
        try:
            return self.read_json()
        except BadRequestError as error:
            raise GraphError(100, str(error)) from None

    def _answer_page(self) -> None:
        self.send(200, HTML, PAGE.read_bytes())


_METHODS: dict[tuple[str, str], Callable[[Handler], None]] = {
    ("POST", "messages"): Handler._post_message,
    ("POST", "message_templates"): Handler._create_template,
    ("GET", "message_templates"): Handler._list_templates,
}
