"""Writes many rows, each with its own values, in one statement.

Django's ``bulk_update`` makes a CASE with a branch for every row, and its
``bulk_create`` quotes every value by itself. Here the rows travel as one JSON
text, which costs a tenth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
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
    table, pk = model._meta.db_table, columns["pk"]
    others = [columns[key] for key in keys if key != "pk"]
    conditions = {_column(model, name): list(allowed) for name, allowed in (only_if or {}).items()}
    were = "".join(f", t.{column} AS was_{column}" for column in {*others, *conditions})
    wheres = [
        f"t.{pk} = v.{pk}",
        *(f"v.was_{column} = v.{column}" for column in others),
        *(f"v.was_{column} = ANY(%s)" for column in conditions),
    ]
    # Locked in one order first, or two workers could wait for each other. What a row
    # was is judged as it was locked: judged beside the key, statistics of an hour at
    # which nothing had that status would make it a scan of the table.
    # Every name is that of a field of ours.
    sql = f"""
        WITH v AS MATERIALIZED (
            SELECT v.*{were} FROM ({_rows_of(model, rows[0])}) v JOIN {table} t USING ({pk})
            ORDER BY {pk} FOR NO KEY UPDATE OF t
        )
        UPDATE {table} t SET {sets} FROM v WHERE {" AND ".join(wheres)} RETURNING t.{pk}"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [_as_json(model, rows), *conditions.values()])
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


def as_array(keys: Iterable[Any]) -> str:
    """Primary keys as the text of an array, for ``array_type``: psycopg quotes each key by itself."""
    return f"{{{','.join(map(str, keys))}}}"


def array_type(model: type[models.Model]) -> str:
    """The cast that makes an array of a model's primary keys of such a text."""
    return f"::{_type_of(_field(model, 'pk'))}[]"


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
    # Instants and UUIDs are written as Postgres reads them (RFC 3339, RFC 9562).
    return orjson.dumps([{columns[name]: value for name, value in row.items()} for row in rows]).decode()
