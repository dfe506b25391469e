"""A webhook body, turned into events. Pure: no database, no settings.

Lenient in, strict inside: numbers come as strings and the other way round, keys
are missing, kinds are new. What cannot be read becomes an Unreadable of its own
and never costs its neighbours. Shapes: Meta's webhook reference of the WhatsApp
Business Platform, versions 23 to 26.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from whatsapp.answers import language_code
from whatsapp.clean import storable
from whatsapp.errors import Next, as_code, verdict
from whatsapp.events import (
    DETAIL_LENGTH,
    EARLIEST,
    KNOWN_TYPES,
    LATEST,
    PAYLOAD_LENGTH,
    PHONE_LENGTH,
    REFERENCE_LENGTH,
    TEXT_LENGTH,
    TITLE_LENGTH,
    UNLIMITED,
    USER_ID_LENGTH,
    WAMID_LENGTH,
    WORD_LENGTH,
    AccountChanged,
    EchoSent,
    Event,
    Fault,
    Ignored,
    MessageReceived,
    PreferenceNoted,
    StatusReceived,
    TemplateAspect,
    TemplateChanged,
    Unreadable,
    Urgency,
)

Json = Mapping[str, Any]


class _Odd(Exception):
    """The item lacks what it must have."""


@dataclass(frozen=True, kw_only=True)
class _Change:
    """One change of one entry, with what holds for all its items."""

    path: str
    field: str
    value: Json
    business_account_id: str
    at: datetime | None


def parse(raw: bytes, *, phone_number_id: str, business_account_id: str) -> Iterator[Event]:
    """Everything that a body tells, in its order. Never raises for what stands in it.

    What concerns another number, or another account, is Ignored. An empty
    ``business_account_id`` stands for any.
    """
    try:
        body = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        yield Unreadable(reason=type(error).__name__)
        return
    if not isinstance(body, dict):
        yield Unreadable(reason="not an object")
        return
    if body.get("object") != "whatsapp_business_account":
        yield Ignored(path="object", why="not of WhatsApp")
        return
    for path, entry in _items(body, "entry"):
        if not isinstance(entry, dict):
            yield Unreadable(path=path, reason="not an object")
            continue
        for inner_path, change in _items(entry, "changes", path):
            yield from _events(inner_path, entry, change, phone_number_id, business_account_id)


def _events(
    path: str, entry: Json, change: object, phone_number_id: str, business_account_id: str
) -> Iterator[Event]:
    if not isinstance(change, dict) or not isinstance(change.get("value"), dict):
        yield Unreadable(path=path, reason="no value")
        return
    known = _Change(
        path=path,
        field=_word(change.get("field")).lower(),
        value=change["value"],
        business_account_id=_text(entry.get("id"), 64),
        at=_time_or_none(entry.get("time")),
    )
    if known.field in WITH_METADATA:
        yield from _of_number(known, phone_number_id)
    elif business_account_id and known.business_account_id != business_account_id:
        yield Ignored(path=path, why="another account")
    else:
        yield from _of_account(known)


def _of_number(change: _Change, phone_number_id: str) -> Iterator[Event]:
    metadata = change.value.get("metadata")
    if not isinstance(metadata, dict):
        yield Unreadable(path=change.path, reason="no metadata")
    elif _text(metadata.get("phone_number_id"), 64) != phone_number_id:
        yield Ignored(path=change.path, why="another number")
    else:
        for key, read in WITH_METADATA[change.field].items():
            for path, item in _items(change.value, key, change.path):
                yield _read(read, path, item)


def _read(read: Callable[[str, Json], Event], path: str, item: object) -> Event:
    if isinstance(item, _Odd) or not isinstance(item, dict):
        return Unreadable(path=path, reason="not an object")
    try:
        return read(path, item)
    except _Odd as odd:
        return Unreadable(path=path, reason=str(odd))


def _of_account(change: _Change) -> Iterator[Event]:
    # Quality is told under two field names, so the keys decide.
    read: Callable[[_Change], Event]
    if "new_quality_score" in change.value:
        read = _template_quality
    elif change.field in WITHOUT_METADATA:
        read = WITHOUT_METADATA[change.field]
    else:
        yield Ignored(path=change.path, why="another field")
        return
    try:
        yield read(change)
    except _Odd as odd:
        yield Unreadable(path=change.path, reason=str(odd))


# --- messages -----------------------------------------------------------------


def _message(path: str, item: Json) -> Event:
    kind = _word(item.get("type")).lower()
    text, payload, title = _contents(kind, item)
    phone, user_id = _digits(item.get("from")), _text(item.get("from_user_id"), USER_ID_LENGTH)
    if not phone and not user_id:
        raise _Odd("no sender")
    return MessageReceived(
        path=path,
        wamid=_wamid(item.get("id")),
        at=_time(item.get("timestamp")),
        type=kind if kind in KNOWN_TYPES else "unsupported",
        phone=phone,
        user_id=user_id,
        text=storable(text, TEXT_LENGTH),
        payload=storable(payload, PAYLOAD_LENGTH),
        title=storable(title, TITLE_LENGTH),
        # A forwarded message has a context without an id.
        context_wamid=_text(_object(item.get("context")).get("id"), WAMID_LENGTH),
        is_group=bool(item.get("group_id")),
    )


def _contents(kind: str, item: Json) -> tuple[str, str, str]:
    """The text, payload and title of a message of this kind."""
    part = _object(item.get(kind))
    match kind:
        case "button":
            return "", _string(part.get("payload")), _string(part.get("text"))
        case "interactive":
            # button_reply, list_reply, or a form of which only the cover is read.
            reply = _object(part.get(_string(part.get("type"))))
            return _string(reply.get("body")), _string(reply.get("id")), _string(reply.get("title"))
        case "text" | "system":
            return _string(part.get("body")), "", ""
        case "reaction":
            return _string(part.get("emoji")), "", ""
        case _:
            return _string(part.get("caption")), "", ""


def _status(path: str, item: Json) -> Event:
    status = _word(item.get("status")).lower()
    if not status:
        raise _Odd("no status")
    return StatusReceived(
        path=path,
        wamid=_wamid(item.get("id")),
        status=status,
        at=_time(item.get("timestamp")),
        reference=_text(item.get("biz_opaque_callback_data"), REFERENCE_LENGTH),
        recipient_phone=_digits(item.get("recipient_id")),
        recipient_user_id=_text(item.get("recipient_user_id"), USER_ID_LENGTH),
        errors=tuple(_fault(error) for error in _list(item.get("errors")) if isinstance(error, dict)),
        category=_word(_object(item.get("pricing")).get("category")).lower(),
    )


def _fault(error: Json) -> Fault:
    data = error.get("error_data")
    details = data if isinstance(data, str) else _object(data).get("details")
    return Fault(
        code=as_code(error.get("code")),
        subcode=as_code(error.get("error_subcode")),
        details=_text(details, DETAIL_LENGTH),
    )


def _number_trouble(path: str, item: Json) -> Event:
    fault = _fault(item)
    answer = verdict(fault.code, subcode=fault.subcode, details=fault.details)
    stops = answer.next is Next.CHANNEL
    return AccountChanged(
        path=path,
        kind="errors",
        event="",
        urgency=Urgency.URGENT if stops else Urgency.ALERT,
        error_code=fault.code,
        may_send=False if stops else None,
    )


def _echo(path: str, _item: Json) -> Event:
    return EchoSent(path=path)


def _preference(path: str, _item: Json) -> Event:
    return PreferenceNoted(path=path)


# --- templates ----------------------------------------------------------------

# Words of the webhook that the API does not know; FLAGGED warns and changes nothing.
TEMPLATE_STATUS = {"REINSTATED": "APPROVED", "UNARCHIVED": "APPROVED", "FLAGGED": ""}


def _template(change: _Change, aspect: TemplateAspect, **news: str) -> TemplateChanged:
    name = _text(change.value.get("message_template_name"), 512)
    language = language_code(_text(change.value.get("message_template_language"), 16))
    if not name or not language:
        raise _Odd("no template")
    return TemplateChanged(
        path=change.path,
        aspect=aspect,
        business_account_id=change.business_account_id,
        name=name,
        language=language,
        at=change.at,
        template_id=_text(change.value.get("message_template_id"), 64),
        **news,
    )


def _template_status(change: _Change) -> Event:
    event = _capitals(change.value.get("event"))
    if not event:
        raise _Odd("no event")
    told = _object(change.value.get("rejection_info"))
    parts = [change.value.get("reason"), told.get("reason"), told.get("recommendation")]
    return _template(
        change,
        TemplateAspect.STATUS,
        status=TEMPLATE_STATUS.get(event, event),
        category=_capitals(change.value.get("message_template_category")),
        reason=". ".join(text for part in parts if (text := _text(part, DETAIL_LENGTH)) not in ("", "NONE")),
    )


def _template_quality(change: _Change) -> Event:
    quality = _capitals(change.value.get("new_quality_score"))
    return _template(change, TemplateAspect.QUALITY, quality=quality)


def _template_category(change: _Change) -> Event:
    # In a warning new_category is still the present one, and correct_category what comes.
    return _template(
        change,
        TemplateAspect.CATEGORY,
        category=_capitals(change.value.get("new_category")),
        coming_category=_capitals(change.value.get("correct_category")),
    )


def _template_components(change: _Change) -> Event:
    return _template(change, TemplateAspect.COMPONENTS)


# --- number and account -------------------------------------------------------

STOPS = frozenset({"DISABLE", "ACCOUNT_DELETED", "ACCOUNT_OFFBOARDED", "RESTRICTED_BIZ_INITIATED_MESSAGING"})
STARTS = frozenset({"REINSTATE", "ACCOUNT_RECONNECTED"})
ALARMS = frozenset({"ACCOUNT_RESTRICTION", "ACCOUNT_VIOLATION", "DISABLED_UPDATE", "FLAGGED", "DOWNGRADE"})


def _account(change: _Change) -> Event:
    value = change.value
    event = _capitals(value.get("event") or value.get("decision"))
    restrictions = [
        _capitals(item.get("restriction_type"))
        for item in _list(value.get("restriction_info"))
        if isinstance(item, dict)
    ]
    words = {event, _capitals(_object(value.get("ban_info")).get("waba_ban_state")), *restrictions}
    may_send = False if words & STOPS else True if words & STARTS else None
    urgency = Urgency.ALERT if words & ALARMS else Urgency.NOTE
    return AccountChanged(
        path=change.path,
        kind=change.field,
        event=event,
        urgency=Urgency.URGENT if may_send is False else urgency,
        at=change.at,
        may_send=may_send,
    )


def _limits(change: _Change) -> Event:
    value = change.value
    names = ("max_daily_conversations_per_business", "max_daily_conversation_per_phone", "current_limit")
    told = next((value[name] for name in names if name in value), None)
    event = _capitals(value.get("event"))
    return AccountChanged(
        path=change.path,
        kind=change.field,
        event=event,
        urgency=Urgency.ALERT if event in ALARMS else Urgency.NOTE,
        at=change.at,
        daily_limit=_daily_limit(told),
    )


def _alert(change: _Change) -> Event:
    info = _object(change.value.get("alert_info"))
    return AccountChanged(
        path=change.path,
        kind=change.field,
        event=_text(info.get("alert_type"), 100).upper(),
        urgency=Urgency.ALERT,
        at=change.at,
    )


def _security(change: _Change) -> Event:
    # Whoever resets the PIN is about to take the number over.
    event = _capitals(change.value.get("event"))
    return AccountChanged(
        path=change.path, kind=change.field, event=event, urgency=Urgency.URGENT, at=change.at
    )


def _daily_limit(told: object) -> int | None:
    """2000, "2000", "TIER_2K" and -1 or "TIER_UNLIMITED" are all in use."""
    words = str(told).upper().removeprefix("TIER_")
    if words in ("UNLIMITED", "-1"):
        return UNLIMITED
    match = re.fullmatch(r"([0-9]{1,9})(K?)", words)
    return int(match[1]) * (1000 if match[2] else 1) if match else None


WITH_METADATA: dict[str, dict[str, Callable[[str, Json], Event]]] = {
    "messages": {"messages": _message, "statuses": _status, "errors": _number_trouble},
    "smb_message_echoes": {"message_echoes": _echo},
    "user_preferences": {"user_preferences": _preference},
}
WITHOUT_METADATA: dict[str, Callable[[_Change], Event]] = {
    "message_template_status_update": _template_status,
    "message_template_quality_update": _template_quality,
    "template_category_update": _template_category,
    "message_template_components_update": _template_components,
    "account_update": _account,
    "account_review_update": _account,
    "phone_number_quality_update": _limits,
    "business_capability_update": _limits,
    "account_alerts": _alert,
    "security": _security,
}


# --- single values ------------------------------------------------------------


def _items(parent: Json, key: str, path: str = "") -> Iterator[tuple[str, object]]:
    """The members of a list with their paths; something else in its place is one odd member."""
    place = f"{path}.{key}" if path else key
    value = parent.get(key)
    if value is None:
        return
    if not isinstance(value, list):
        yield place, _Odd()
        return
    for index, item in enumerate(value):
        yield f"{place}[{index}]", item


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(value: object, limit: int) -> str:
    """A string, or a whole number as one, fit for a column of this length."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to write out numbers of thousands of digits.
        value = str(value) if value.bit_length() < 256 else ""
    return storable(_string(value), limit)


def _word(value: object) -> str:
    return _text(value, WORD_LENGTH)


def _capitals(value: object) -> str:
    return _word(value).upper()


def _digits(value: object) -> str:
    number = _text(value, 100).removeprefix("+")
    return number if re.fullmatch(rf"[0-9]{{1,{PHONE_LENGTH}}}", number) else ""


def _wamid(value: object) -> str:
    wamid = _text(value, WAMID_LENGTH + 1)
    if not 0 < len(wamid) <= WAMID_LENGTH:
        raise _Odd("no id")
    return wamid


def _time_or_none(value: object) -> datetime | None:
    written = _text(value, 20)
    seconds = int(written) if re.fullmatch(r"[0-9]{1,20}", written) else 0
    return datetime.fromtimestamp(seconds, UTC) if EARLIEST <= seconds <= LATEST else None


def _time(value: object) -> datetime:
    """Seconds since 1970 as number or text; raises _Odd for anything else."""
    at = _time_or_none(value)
    if at is None:
        raise _Odd("no time")
    return at
