"""Django's ordinary mail backend, and what the errors of SMTP mean."""

from __future__ import annotations

import re
import smtplib
from contextlib import suppress
from email.utils import parseaddr

from django.core.mail import EmailMessage, get_connection

from reminders.channels.base import AnswerLost, ChannelError, Undeliverable
from reminders.retired import DeadAddress, Why

_NO_MAILBOX = re.compile(r"\b5\.1\.[1236]\b")
"""Enhanced codes of an address that leads nowhere (RFC 3463, section 3.2)."""


def message_id(reference: str, *, sender: str) -> str:
    """The Message-ID of a mail with our reference: the same however often it is asked for."""
    domain = parseaddr(sender)[1].rpartition("@")[2]
    return f"<{reference.replace(':', '-')}@{domain}>"


def send(mail: EmailMessage) -> None:
    """Hand a mail to one address over. Raises a ChannelError."""
    # A connection for each mail: a server may have closed one that rested, and
    # to notice that while sending would look like a lost answer.
    backend = get_connection()
    try:
        backend.open()
    except OSError as error:
        raise _not_begun(error) from error
    try:
        backend.send_messages([mail])
    except OSError as error:
        raise _failure(error) from error
    except ValueError as error:
        raise Undeliverable("bad_message") from error
    finally:
        with suppress(OSError):
            backend.close()


def _not_begun(error: OSError) -> ChannelError:
    """Nothing was handed over: not reached, or no login."""
    if isinstance(error, smtplib.SMTPResponseException):
        return ChannelError(str(error.smtp_code), _said(error.smtp_error))
    return ChannelError(type(error).__name__)


def _failure(error: OSError) -> ChannelError:
    match error:
        case smtplib.SMTPRecipientsRefused():
            [(code, said)] = error.recipients.values()
            return _refused_address(code, _said(said))
        case smtplib.SMTPSenderRefused():
            # The account's fault and not the mail's: it may be mended.
            return ChannelError(str(error.smtp_code), _said(error.smtp_error))
        case smtplib.SMTPResponseException():
            later = 400 <= error.smtp_code < 500
            return (ChannelError if later else Undeliverable)(str(error.smtp_code), _said(error.smtp_error))
        case smtplib.SMTPNotSupportedError():
            return Undeliverable("not_supported")
    # Cut or silent, perhaps after the mail was taken.
    return AnswerLost(type(error).__name__)


def _refused_address(code: int, said: str) -> ChannelError:
    if code < 500:
        return ChannelError(str(code), said)
    if _NO_MAILBOX.search(said):
        return DeadAddress(str(code), said, why=Why.BOUNCED)
    return Undeliverable(str(code), said)


def _said(words: bytes | str) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else words
