"""The web process: gunicorn amedi.wsgi."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amedi.settings")
try:
    application = get_wsgi_application()
    # A server does not run them by itself, and settings that cannot work must not serve.
    call_command("check")
except (ImproperlyConfigured, SystemCheckError) as error:
    print(f"amedi: {error}", file=sys.stderr)
    # By this code gunicorn knows that another worker would not start either.
    raise SystemExit(3) from None
