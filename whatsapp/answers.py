"""What Meta answers to a call, read into a value or an exception. Pure.

Decided on ``error.code``, not on the HTTP status: a 5xx with a readable code is
a definite refusal, a 200 without a wamid tells nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from whatsapp.clean import storable
from whatsapp.errors import Next, Verdict, as_code, verdict
from whatsapp.events import PHONE_LENGTH, USER_ID_LENGTH, WAMID_LENGTH

TEXT_LENGTH = 1000
LONGEST_WAIT = timedelta(hours=1)
"""A Retry-After beyond it is taken for a mistake and cut."""


class ClientError(Exception):
    """A call to Meta did not end well. Its words are ids and codes, fit for a log."""


class NotReached(ClientError):
    """Nothing was written: refused, unknown host, no connection in time. It may be repeated."""


class AnswerLost(ClientError):
    """Meta may have taken it: no answer came, or one that tells nothing. Never to be repeated."""


class GraphError(ClientError):
    """Meta refused, and said why."""

    def __init__(
        self,
        *,
        code: int | None,
        subcode: int | None = None,
        details: str = "",
        user_message: str = "",
        http_status: int = 0,
        trace_id: str = "",
        retry_after: timedelta | None = None,
        to_venezuela: bool = True,
    ) -> None:
        super().__init__(f"code={code} subcode={subcode} http={http_status} trace={trace_id}")
        self.code = code
        self.subcode = subcode
        self.details = details
        """Meta's words. They may repeat what we sent: for the row, not for a log."""
        self.user_message = user_message
        """What Meta wants a person to read, when a template was refused."""
        self.http_status = http_status
        self.retry_after = retry_after
        """How long Meta asks us to wait, at most an hour."""
        self.verdict = (
            Verdict(next=Next.PACE)
            if code is None
            else verdict(code, subcode=subcode, details=details, to_venezuela=to_venezuela)
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An HTTP answer, whichever library brought it. Header names in lower case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """That Meta took the message. Not that it was delivered."""

    wamid: str
    wa_id: str = ""
    """The number as WhatsApp knows it; may differ from the one dialled."""
    user_id: str = ""
    """The BSUID, for one who has no number for us."""
    message_status: str = ""
    """``accepted``, or ``held_for_quality_assessment``: it may yet be dropped."""


@dataclass(frozen=True, kw_only=True)
class CreatedTemplate:
    """Meta's answer to a new template. The category may be another than the one asked for."""

    template_id: str
    status: str
    category: str


@dataclass(frozen=True, kw_only=True)
class ListedTemplate:
    """A template as Meta has it."""

    template_id: str
    name: str
    language: str
    status: str
    category: str
    previous_category: str = ""
    correct_category: str = ""
    """The category that Meta is about to give it."""
    quality: str = ""
    rejected_reason: str = ""
    ttl_seconds: int | None = None
    components: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TemplatePage:
    """One page of the list, and the cursor of the next one, or "" after the last."""

    templates: tuple[ListedTemplate, ...]
    after: str


def read_accepted(answer: Answer, *, to_venezuela: bool = True) -> Accepted:
    """The receipt for a message. Raises GraphError or AnswerLost."""
    content = _content(answer)
    message = _first(content.get("messages"))
    wamid = _identifier(message.get("id"), WAMID_LENGTH)
    if not answer.is_success or not wamid:
        raise _refusal(answer, content, to_venezuela=to_venezuela)
    contact = _first(content.get("contacts"))
    return Accepted(
        wamid=wamid,
        wa_id=_identifier(contact.get("wa_id"), PHONE_LENGTH),
        user_id=_identifier(contact.get("user_id"), USER_ID_LENGTH),
        message_status=_text(message.get("message_status")),
    )


def read_created(answer: Answer) -> CreatedTemplate:
    """What became of a new template. Raises GraphError or AnswerLost."""
    content = _content(answer)
    template_id = _text(content.get("id"))
    if not answer.is_success or not template_id:
        raise _refusal(answer, content)
    return CreatedTemplate(
        template_id=template_id,
        status=_text(content.get("status")).upper(),
        category=_text(content.get("category")).upper(),
    )


def read_page(answer: Answer) -> TemplatePage:
    """One page of templates; one without name or language is left out.

    Raises GraphError or AnswerLost.
    """
    content = _content(answer)
    rows = content.get("data")
    if not answer.is_success or not isinstance(rows, list):
        raise _refusal(answer, content)
    listed = [_listed(row) for row in rows if isinstance(row, dict)]
    paging = _object(content.get("paging"))
    # Only the cursor: the address in "next" may hold the token, and any host.
    after = _text(_object(paging.get("cursors")).get("after")) if paging.get("next") else ""
    return TemplatePage(templates=tuple(item for item in listed if item.name and item.language), after=after)


def language_code(text: str) -> str:
    """``es-MX`` and ``es_MX`` are one: webhooks write the one, the API the other."""
    return text.strip().replace("-", "_")


def _refusal(answer: Answer, content: Mapping[str, Any], *, to_venezuela: bool = True) -> ClientError:
    error = _object(content.get("error"))
    code = as_code(error.get("code"))
    if code is None and answer.status != 429:
        return AnswerLost(f"http={answer.status} without a code")
    data = error.get("error_data")
    return GraphError(
        code=code,
        subcode=as_code(error.get("error_subcode")),
        details=_text(data) or _text(_object(data).get("details")),
        user_message=_text(error.get("error_user_msg")),
        http_status=answer.status,
        trace_id=re.sub(r"[^\w-]", "", _text(error.get("fbtrace_id")))[:64],
        retry_after=read_retry_after(answer.headers),
        to_venezuela=to_venezuela,
    )


def read_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """How long Retry-After asks us to wait (RFC 9110, section 10.2.3); None when it does not.

    A date is taken against the answer's own Date, so that no clock but the
    sender's matters.
    """
    asked = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", asked):
        wait = timedelta(seconds=int(asked))
    else:
        try:
            wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
        except (TypeError, ValueError):
            return None
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


def _listed(row: Mapping[str, Any]) -> ListedTemplate:
    components = row.get("components")
    quality = row.get("quality_score")
    return ListedTemplate(
        template_id=_text(row.get("id")),
        name=_text(row.get("name")),
        language=language_code(_text(row.get("language"))),
        status=_text(row.get("status")).upper(),
        category=_text(row.get("category")).upper(),
        previous_category=_text(row.get("previous_category")).upper(),
        correct_category=_text(row.get("correct_category")).upper(),
        quality=_text(_object(quality).get("score") or quality).upper(),
        rejected_reason=_text(row.get("rejected_reason")).upper(),
        ttl_seconds=as_code(row.get("message_send_ttl_seconds")),
        components=tuple(part for part in components if isinstance(part, dict))
        if isinstance(components, list)
        else (),
    )


def _content(answer: Answer) -> Mapping[str, Any]:
    try:
        return _object(json.loads(answer.body))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _object(value[0]) if isinstance(value, list) and value else {}


def _text(value: object) -> str:
    """A string, or a number as one; "" for anything else."""
    if isinstance(value, str):
        return storable(value, TEXT_LENGTH)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ""


def _identifier(value: object, limit: int) -> str:
    """An id, or "" for one that could not be kept whole: cut, it would be another's."""
    text = _text(value)
    return text if isinstance(value, str | int) and text == str(value) and len(text) <= limit else ""
