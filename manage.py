#!/usr/bin/env python
"""The command line of Amedi reminders."""

import os
import sys
from typing import NoReturn


def give_up(reason: object) -> NoReturn:
    """End with one line and exit code 2."""
    print(f"amedi: {reason}", file=sys.stderr)
    raise SystemExit(2) from None


def main() -> None:
    """Run one management command; exit 2 with one line when a setting is wrong."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amedi.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, connection

    try:
        from amedi import local_postgres
    except ImproperlyConfigured as error:
        give_up(error)
    try:
        if local_postgres.is_wanted():
            local_postgres.SERVER.start()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, local_postgres.Unavailable) as error:
        give_up(error)
    except OperationalError:
        if connection.connection is not None:
            raise
        give_up("no database answers at DATABASE_URL; is it running, and the address right?")


if __name__ == "__main__":
    main()
