"""The list of templates, page by page, as ``GET /{WABA}/message_templates`` gives it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from amedi.sandbox.graph_errors import GraphError
from amedi.sandbox.templates import Template

DEFAULT_LIMIT = 25
DEFAULT_FIELDS = "name,parameter_format,components,language,status,category,id"
"""Reason, score and time to live come only when they are asked for."""


def template_page(
    templates: Sequence[Template], query: Mapping[str, str], *, address: str
) -> dict[str, object]:
    """One page, with a cursor to the next one while there is one.

    Raises GraphError 100 for a limit or cursor that cannot be read.
    """
    limit = _whole_number(query.get("limit", str(DEFAULT_LIMIT)), "limit")
    start = _place(query["after"]) if "after" in query else 0
    fields = query.get("fields", DEFAULT_FIELDS).split(",")
    shown = [template.as_json() for template in templates[start : start + limit]]
    page: dict[str, object] = {
        "data": [{key: value for key, value in whole.items() if key in {*fields, "id"}} for whole in shown]
    }
    if shown:
        after = _cursor(start + len(shown))
        paging: dict[str, object] = {"cursors": {"before": _cursor(start), "after": after}}
        if start + limit < len(templates):
            paging["next"] = f"{address}?{urlencode({**query, 'limit': limit, 'after': after})}"
        page["paging"] = paging
    return page


def _whole_number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise GraphError(100, f"Param {name} must be a whole number from 1 to 1000.")
    return int(text)


def _cursor(place: int) -> str:
    return base64.urlsafe_b64encode(f"place-{place}".encode()).decode()


def _place(cursor: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(cursor).decode().removeprefix("place-"))
    except ValueError:
        raise GraphError(100, "Param after is not a cursor.") from None
