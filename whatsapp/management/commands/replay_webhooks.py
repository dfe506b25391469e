"""Handle webhook posts again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from whatsapp import inbox
from whatsapp.models import WebhookPost


class Command(BaseCommand):
    help = "Handles webhook posts that were never finished; what was handled before stays handled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--quarantined", action="store_true", help="posts of which a part was put aside")
        which.add_argument("--post", type=int, metavar="ID", help="only this post")

    def handle(self, *_args: Any, **options: Any) -> None:
        now = timezone.now()
        if options["post"] is not None and not WebhookPost.objects.filter(pk=options["post"]).exists():
            raise CommandError(
                _("No hay ningún aviso %(post)d: vea los números en la administración.")
                % {"post": options["post"]}
            )
        done = inbox.replay(now=now, post_id=options["post"], quarantined=options["quarantined"])
        self.stdout.write(_("Avisos procesados: %(count)d.") % {"count": done})
        if waiting := WebhookPost.objects.unprocessed().count():
            self.stdout.write(
                _("Sin terminar: %(count)d. Si otro proceso los tiene, repita en dos minutos.")
                % {"count": waiting}
            )
