"""What Postgres does to one of two that wait for each other, without the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

DEADLOCK = "40P01"
SHUTDOWN = "57P01"


@contextmanager
def undone(table: str, *, times: int, code: str = DEADLOCK) -> Iterator[None]:
    """Undo the first statements that write a row of the table."""
    # A sequence counts on where what was undone is forgotten.
    with connection.cursor() as cursor:
        cursor.execute(
            f"""CREATE SEQUENCE undone;
                CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF nextval('undone') <= {times} THEN
                        RAISE EXCEPTION 'undone' USING ERRCODE = '{code}';
                    END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER undo BEFORE INSERT OR UPDATE ON {table}
                    FOR EACH ROW EXECUTE FUNCTION undo();"""
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION undo() CASCADE; DROP SEQUENCE undone;")
