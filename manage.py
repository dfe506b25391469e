#!/usr/bin/env python
"""The command line of Amedi reminders."""

import os
import sys


def main() -> None:
    """Run one management command; exit 2 with one line when a setting is wrong."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amedi.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, connection

    from amedi import local_postgres

    try:
        if local_postgres.is_wanted():
            local_postgres.SERVER.start()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, local_postgres.Unavailable) as error:
        print(f"amedi: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OperationalError:
        if connection.connection is not None:
            raise
        print(
            "amedi: no database answers at DATABASE_URL; is it running, and the address right?",
            file=sys.stderr,
        )
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
