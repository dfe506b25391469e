"""The templates: ours, Meta's, and from the one to the other."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from whatsapp import templates
from whatsapp.client import Client, ClientError, GraphError
from whatsapp.models import Template


class Command(BaseCommand):
    help = "Lists our WhatsApp templates, reads Meta's (sync), or submits ours for review (submit)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["list", "sync", "submit"])

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            for sentence in self._sentences(options["action"]):
                self.stdout.write(sentence)
        except GraphError as error:
            raise CommandError(
                _("Meta no aceptó la consulta (código %(code)s). %(details)s")
                % {"code": error.code, "details": error.user_message or error.details}
            ) from None
        except ClientError:
            raise CommandError(_("Meta no responde; inténtelo más tarde.")) from None
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None

    def _sentences(self, action: str) -> Iterator[str]:
        if action == "list":
            return self._list()
        client = Client.from_settings()
        if not client.business_account_id:
            raise CommandError("WHATSAPP_BUSINESS_ACCOUNT_ID is not set.")
        work = templates.sync if action == "sync" else templates.submit
        return work(client, now=timezone.now())

    def _list(self) -> Iterator[str]:
        rows = {(row.name, row.language): row for row in Template.objects.all()}
        for standard in templates.standard_templates().values():
            row = rows.get((standard.name, standard.language))
            state = f"{row.status}, {row.category}" if row else _("Meta aún no la tiene, o falta «sync»")
            yield f"{standard.name} ({standard.language}): {state}\n    {standard.text}"
