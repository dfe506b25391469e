"""Django settings. Every value that differs between places comes from the environment."""

import os
from pathlib import Path
from typing import Any

from amedi import environment, local_postgres

BASE_DIR = environment.BASE_DIR
LOCAL_DIR = BASE_DIR / ".local"
IS_LOCAL = local_postgres.is_wanted()


def _local_secret(name: str) -> str | None:
    """On a developer's machine a secret makes itself; elsewhere it must be given."""
    if not IS_LOCAL:
        return None
    return f"only-for-development-{name}-{BASE_DIR.name}"


DEBUG = environment.switch("DEBUG", default=False)
SECRET_KEY = environment.text("SECRET_KEY", _local_secret("secret-key"))
SECRET_KEY_FALLBACKS = environment.listed("SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = environment.listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = environment.listed("CSRF_TRUSTED_ORIGINS")
SITE_URL = environment.address("SITE_URL", "http://127.0.0.1:8000")
# The base of the links that patients get.
CLIENT_URL = environment.address("CLIENT_URL", SITE_URL)
# Where amedi.asgi serves the live room's stream.
ROOM_STREAM_URL = environment.address("ROOM_STREAM_URL", SITE_URL)
# Who may read /readyz and /metrics; empty: whoever is on this machine.
METRICS_TOKEN = environment.text("METRICS_TOKEN", "")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_q",
    "anymail",
    "appointments",
    "whatsapp",
    "reminders",
    "amedi",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "amedi.urls"
WSGI_APPLICATION = "amedi.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **environment.database("DATABASE_URL", local_postgres.SERVER.url if IS_LOCAL else None),
        # Without it django-q2 opens a connection for every broker call. Never
        # Django's pool: the cluster forks, and pooled sockets break there. Under ASGI
        # each request has a thread of its own, and would leave a connection behind.
        "CONN_MAX_AGE": 0 if "AMEDI_ASGI" in os.environ else 60,
        "CONN_HEALTH_CHECKS": True,
    }
}
# A database that is not there must be known as soon as that, and not in minutes.
DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "es"
USE_I18N = True
USE_TZ = True
# The zone of screens without a place of their own; a visit is shown in its office's.
TIME_ZONE = "America/Caracas"

STATIC_URL = "static/"
# Served from the apps' own folders: one step less that a deployment can forget.
WHITENOISE_USE_FINDERS = True

FORMS_URLFIELD_ASSUME_HTTPS = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SITE_URL.startswith("https://")

# Meta posts webhooks of up to 3 MB; the webhook answers 413 above that.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}

# --- WhatsApp -----------------------------------------------------------------

WHATSAPP_API_URL = environment.address("WHATSAPP_API_URL", "https://graph.facebook.com")
WHATSAPP_API_VERSION = environment.matching(
    "WHATSAPP_API_VERSION", r"v[0-9]+\.[0-9]+", default="v26.0", example="v26.0"
)
WHATSAPP_PHONE_NUMBER_ID = environment.matching(
    "WHATSAPP_PHONE_NUMBER_ID", r"[0-9]+", example="200000000000002"
)
WHATSAPP_BUSINESS_ACCOUNT_ID = environment.matching(
    "WHATSAPP_BUSINESS_ACCOUNT_ID", r"[0-9]+", example="100000000000001"
)
WHATSAPP_ACCESS_TOKEN = environment.text("WHATSAPP_ACCESS_TOKEN", "")
WHATSAPP_APP_SECRETS = environment.listed("WHATSAPP_APP_SECRET")
WHATSAPP_VERIFY_TOKEN = environment.text("WHATSAPP_VERIFY_TOKEN", "")
WHATSAPP_CONNECT_TIMEOUT_SECONDS = 5
WHATSAPP_READ_TIMEOUT_SECONDS = 20
WHATSAPP_TEMPLATES_DIR: Path = BASE_DIR / "templates" / "whatsapp"

# --- Email: Postmark, or the ordinary backend where there is no account --------

DEFAULT_FROM_EMAIL = environment.text("DEFAULT_FROM_EMAIL", "citas@localhost")
POSTMARK_SERVER_TOKEN = environment.text("POSTMARK_SERVER_TOKEN", "")
POSTMARK_API_URL = environment.address("POSTMARK_API_URL", "https://api.postmarkapp.com")
# "user:password" of the webhook's basic authentication.
POSTMARK_WEBHOOK_SECRET = environment.text("POSTMARK_WEBHOOK_SECRET", "")
# Django's EMAIL_HOST and its like; staff's own mails go the same way as the patients'.
vars().update(environment.mail_server("EMAIL_URL"))
HAS_MAIL_SERVER = bool(environment.text("EMAIL_URL", ""))
if POSTMARK_SERVER_TOKEN:
    EMAIL_BACKEND = "reminders.postmark.client.Backend"
EMAIL_MAX_PER_SECOND = environment.number("EMAIL_MAX_PER_SECOND", 40, most=500)
EMAIL_CONNECT_TIMEOUT_SECONDS = 5
EMAIL_READ_TIMEOUT_SECONDS = 20
# Django's, for each of the ten or so answers of a mail server.
EMAIL_TIMEOUT = 10

# --- Reminders ----------------------------------------------------------------

CHANNEL_BACKENDS: dict[str, dict[str, Any]] = {
    "whatsapp": {"BACKEND": "reminders.channels.whatsapp.WhatsAppChannel"},
    "email": {"BACKEND": "reminders.channels.email.EmailChannel"},
    "in_app": {"BACKEND": "reminders.channels.in_app.InAppChannel"},
}
# "none" is for the time before there is an account at Meta.
REMINDER_CHANNELS = [name for name in environment.listed("REMINDER_CHANNELS", "whatsapp") if name != "none"]
REMINDER_QUIET_HOURS = environment.clock_range("REMINDER_QUIET_HOURS", "21:00-07:00")
REMINDER_BATCH_SIZE = environment.number("REMINDER_BATCH_SIZE", 20, most=500)
REMINDER_MAX_ATTEMPTS = environment.number("REMINDER_MAX_ATTEMPTS", 8, most=50)
REMINDER_LEASE_SECONDS = environment.number("REMINDER_LEASE_SECONDS", 120, least=5, most=3600)
REMINDER_TICK_SECONDS = environment.number("REMINDER_TICK_SECONDS", 55, most=65)
REMINDER_UNKNOWN_WAIT_SECONDS = environment.number("REMINDER_UNKNOWN_WAIT_SECONDS", 600)
REMINDER_RETRY_WINDOW_SECONDS = environment.number("REMINDER_RETRY_WINDOW_SECONDS", 1800)

# --- django-q2: it ticks and works webhook posts off, and nothing else ---------

Q_CLUSTER = {
    "name": "amedi",
    "label": "Tareas",
    "orm": "default",
    # Two ticks may overlap; the third worker is for webhook posts.
    "workers": 3,
    # longest run < timeout < retry, or a second copy starts beside the first. A
    # tick's last calls may still be in the air when its time is over.
    "timeout": REMINDER_TICK_SECONDS + 45,
    "retry": 180,
    "max_attempts": 1,
    "ack_failures": True,
    # After an outage one tick is enough: the table knows what is due.
    "catch_up": False,
    "poll": 1,
    "bulk": 1,
    "queue_limit": 4,
    "recycle": 200,
    "max_rss": 300_000,
    "save_limit": 100,
}

# --- Logs: one line per outcome, ids only -------------------------------------

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "amedi.log_lines.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's default would mail the request, with whatever a form held.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        "django-q": {"handlers": [], "level": "INFO", "propagate": True},
    },
}
