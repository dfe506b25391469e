"""The one clock: the database's."""

from datetime import datetime

from django.db import connection


def now() -> datetime:
    """The present instant in UTC, as the database sees it.

    Read it at the outermost call and pass it on. Within a transaction that has
    set ``amedi.now`` it is that instant instead: simulations live there.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT amedi_now()")
        [moment] = cursor.fetchone()
    assert isinstance(moment, datetime)  # noqa: S101
    return moment
