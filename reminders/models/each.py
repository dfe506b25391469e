"""Writes many rows, each with its own values, in one statement.

Django's ``bulk_update`` makes a CASE with a branch for every row, and its
``bulk_create`` quotes every value by itself. Here the rows travel as one JSON
text, which costs a tenth.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, models

Values = Mapping[str, object]


def update_each(
    model: type[models.Model],
    rows: Sequence[Values],
    *,
    keys: Sequence[str] = ("pk",),
    only_if: Mapping[str, Collection[str]] | None = None,
) -> set[Any]:
    """Write ``rows``, each a mapping of field names to values; ``keys`` among them find the row.

    "pk" is always one of them. ``only_if`` names, per field, the values that a
    row must have to be changed. Returns the primary keys of the rows that were.
    All rows have the same fields.
    """
    if not rows:
        return set()
    columns = {name: _column(model, name) for name in rows[0]}
    sets = ", ".join(f"{column} = v.{column}" for name, column in columns.items() if name not in keys)
    conditions = only_if or {}
    wheres = [
        *(f"t.{columns[key]} = v.{columns[key]}" for key in keys),
        *(f"t.{_column(model, name)} = ANY(%s)" for name in conditions),
    ]
    table, pk = model._meta.db_table, columns["pk"]
    # Locked in one order first, or two workers could wait for each other.
    # Every name is that of a field of ours.
    sql = f"""
        WITH v AS MATERIALIZED (
            SELECT v.* FROM ({_rows_of(model, rows[0])}) v JOIN {table} t USING ({pk})
            ORDER BY {pk} FOR NO KEY UPDATE OF t
        )
        UPDATE {table} t SET {sets} FROM v WHERE {" AND ".join(wheres)} RETURNING t.{pk}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_as_json(model, rows), *(list(allowed) for allowed in conditions.values())])
        return {key for (key,) in cursor.fetchall()}


def insert_each(
    model: type[models.Model], rows: Sequence[Values], *, returning: Sequence[str] = ("pk",)
) -> list[tuple[Any, ...]]:
    """Insert ``rows``, each a mapping of field names to values, and return columns of the new rows.

    Fields that are not named take the database's defaults, so name those that
    only Django would fill. All rows have the same fields.
    """
    if not rows:
        return []
    columns = ", ".join(_column(model, name) for name in rows[0])
    wanted = ", ".join(_column(model, name) for name in returning)
    sql = f"INSERT INTO {model._meta.db_table} ({columns}) {_rows_of(model, rows[0])} RETURNING {wanted}"
    with connection.cursor() as cursor:
        cursor.execute(sql, [_as_json(model, rows)])
        return list(cursor.fetchall())


def _rows_of(model: type[models.Model], names: Collection[str]) -> str:
    fields = [_field(model, name) for name in names]
    columns = ", ".join(str(field.column) for field in fields)
    types = ", ".join(f"{field.column} {_type_of(field)}" for field in fields)
    return f"SELECT {columns} FROM json_to_recordset(%s::json) AS v({types})"  # noqa: S608


def _field(model: type[models.Model], name: str) -> models.Field[Any, Any]:
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101
    return field


def _column(model: type[models.Model], name: str) -> str:
    return str(_field(model, name).column)


def _type_of(field: models.Field[Any, Any]) -> str:
    """Of the values; text without a length, for a cast would cut what the column refuses."""
    name = field.rel_db_type(connection) or ""
    return "text" if name.startswith("varchar") else name


def _as_json(model: type[models.Model], rows: Sequence[Values]) -> str:
    columns = {name: _column(model, name) for name in rows[0]}
    return json.dumps(
        [{columns[name]: value for name, value in row.items()} for row in rows], default=_as_text
    )


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written")
