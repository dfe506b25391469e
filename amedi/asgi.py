"""The process of the live room: uvicorn amedi.asgi:application --timeout-graceful-shutdown 2.

It can serve all the rest too.
"""

import os
import sys

from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amedi.settings")
# Before the settings are read: they differ here.
os.environ["AMEDI_ASGI"] = "1"
try:
    application = get_asgi_application()
    # A server does not run them by itself, and settings that cannot work must not serve.
    call_command("check")
except (ImproperlyConfigured, SystemCheckError) as error:
    print(f"amedi: {error}", file=sys.stderr)
    raise SystemExit(3) from None
