"""manage.py on a database server of its own, which ends with it: for the checks of the Makefile."""

from tests import private_postgres  # noqa: F401  (first: it sets the environment)

import manage  # isort: skip

if __name__ == "__main__":
    manage.main()
