"""Without a Postmark account mails go through Django's ordinary backend."""

from __future__ import annotations

import asyncio
import email
import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest
from django.core import mail as outbox

from reminders.channels.base import AnswerLost, ChannelError, Undeliverable
from reminders.channels.email import EmailChannel
from reminders.models import RetiredContact
from tests.mail_values import ADDRESS, make_entry, make_message

REFERENCE = "d:0c9a5b1e-4c53-4c35-9d0c-111111111111:2"


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as a mail takes. ``says`` replaces its answer to a verb; None hangs up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.says: dict[str, str | None] = {}
        self.mails: list[bytes] = []
        self.connections = 0


class _Talk(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.server.connections += 1
        if not self._say("hello", "220 ready"):
            return
        while line := self.rfile.readline().decode():
            verb = line.split(maxsplit=1)[0].upper()
            if verb == "DATA" and self._say("DATA", "354 go on"):
                mail = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    mail += part
                self.server.mails.append(mail)
                verb = "taken"
            elif verb == "DATA":
                continue
            if not self._say(verb, "250 fine") or verb == "QUIT":
                return

    def _say(self, verb: str, usual: str) -> bool:
        said = self.server.says.get(verb, usual)
        if said is None:
            return False
        self.wfile.write(f"{said}\r\n".encode())
        return said[0] in "23" or verb not in ("hello", "DATA")


@pytest.fixture
def server(settings) -> Iterator[MailServer]:
    with MailServer() as running:
        loop = threading.Thread(target=running.serve_forever, args=[0.02], daemon=True)
        loop.start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = running.server_address
        settings.EMAIL_TIMEOUT = 2
        settings.DEFAULT_FROM_EMAIL = "Consultorio Ejemplo <citas@consultorio.example>"
        yield running
        running.shutdown()
        loop.join()


def send(**fields):
    channel = EmailChannel()
    message = make_message(reference=REFERENCE, **fields)
    try:
        return channel.call(message, channel.payload(message))
    finally:
        asyncio.run(channel.close())


def refusal() -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send()
    return caught.value


def test_a_mail_arrives_whole_and_under_our_own_id(server):
    receipt = send(entry=make_entry())
    assert receipt.message_id == "<d-0c9a5b1e-4c53-4c35-9d0c-111111111111-2@consultorio.example>"
    [mail] = [email.message_from_bytes(raw) for raw in server.mails]
    assert mail["Message-ID"] == receipt.message_id
    assert mail["To"] == ADDRESS
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "text/calendar" in {part.get_content_type() for part in mail.walk()}


def test_it_is_known_only_that_the_server_took_it(server):
    assert not send().is_delivered
    assert not EmailChannel().can_look_up


@pytest.mark.parametrize(
    ("verb", "says", "means"),
    [
        ("hello", "421 too busy", ChannelError),
        ("MAIL", "550 not from you", ChannelError),
        ("RCPT", "450 4.2.1 later", ChannelError),
        ("RCPT", "550 5.7.1 relaying denied", Undeliverable),
        ("DATA", "451 later", ChannelError),
        ("DATA", "554 no", Undeliverable),
        ("taken", "452 4.3.1 full", ChannelError),
        ("taken", "554 5.7.1 looks like spam", Undeliverable),
    ],
)
def test_an_answer_that_refuses_says_what_comes_next(server, verb, says, means):
    server.says[verb] = says
    error = refusal()
    assert type(error) is means
    assert (error.code, error.detail) == (says[:3], says[4:])


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "taken"])
def test_a_connection_that_is_cut_while_sending_is_a_lost_answer(server, verb):
    server.says[verb] = None
    assert isinstance(refusal(), AnswerLost)


def test_a_connection_that_is_cut_before_is_a_refusal(server):
    server.says["hello"] = None
    assert type(refusal()) is ChannelError


def test_nobody_listening_is_a_refusal(server, settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        settings.EMAIL_PORT = closed.getsockname()[1]
    error = refusal()
    assert (type(error), error.code) == (ChannelError, "ConnectionRefusedError")


@pytest.mark.django_db(transaction=True)
def test_an_address_without_a_mailbox_is_retired(server):
    server.says["RCPT"] = "550 5.1.1 user unknown"
    assert isinstance(refusal(), Undeliverable)
    [retired] = RetiredContact.objects.all()
    assert (retired.address, retired.why) == (ADDRESS.lower(), "bounced")


def test_a_server_that_forgot_us_between_two_mails_is_called_again(server):
    send()
    send()
    assert (server.connections, len(server.mails)) == (2, 2)


def test_any_backend_of_django_will_do():
    receipt = send()
    [mail] = outbox.outbox
    assert mail.extra_headers["Message-ID"] == receipt.message_id
