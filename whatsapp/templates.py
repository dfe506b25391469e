"""The templates: ours as files, Meta's as rows; submitted, read back, and kept up to date."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from whatsapp.client import AnswerLost, Client, ClientError, CreatedTemplate, GraphError, ListedTemplate
from whatsapp.events import TemplateChanged
from whatsapp.models import Template

logger = logging.getLogger(__name__)

CLOCK_MARGIN = timedelta(minutes=1)
"""Meta's clock may be behind ours: news of the minute before count as later than what we read."""

VARIABLE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, kw_only=True)
class StandardTemplate:
    """One of our own templates, as its file says."""

    name: str
    language: str
    text: str
    """The body, with ``{{variables}}``."""
    parameters: tuple[str, ...]
    """The variables, in the order of the text."""
    buttons: tuple[str, ...]
    """The titles of its quick replies."""
    ttl_seconds: int
    """How long Meta tries to deliver it."""
    creation: Mapping[str, Any]
    """What Meta gets to create it."""


def standard_templates() -> Mapping[str, StandardTemplate]:
    """Our templates by name, from the files of the setting WHATSAPP_TEMPLATES_DIR."""
    return _read_all(settings.WHATSAPP_TEMPLATES_DIR)


@cache
def _read_all(folder: Path) -> Mapping[str, StandardTemplate]:
    read = [_read(path) for path in sorted(folder.glob("*.json"))]
    return {template.name: template for template in read}


def _read(path: Path) -> StandardTemplate:
    creation = json.loads(path.read_text(encoding="utf-8"))
    parts = {part["type"]: part for part in creation["components"]}
    text = parts["BODY"]["text"]
    return StandardTemplate(
        name=creation["name"],
        language=creation["language"],
        text=text,
        parameters=tuple(VARIABLE.findall(text)),
        buttons=tuple(button["text"] for button in parts.get("BUTTONS", {"buttons": []})["buttons"]),
        ttl_seconds=creation["message_send_ttl_seconds"],
        creation=creation,
    )


def sync(client: Client, *, now: datetime) -> Iterator[str]:
    """Read every template of the account into rows; yields a sentence on each.

    A row that Meta does not list any more becomes DELETED. Raises ClientError
    when a page cannot be read; what came before it is kept.
    """
    listed = 0
    for item in client.list_templates():
        listed += 1
        yield from _describe(_save(item, client.business_account_id, now), item)
    gone = Template.objects.filter(business_account_id=client.business_account_id).exclude(synced_at=now)
    missing = gone.exclude(status="DELETED")
    for template in missing:
        yield _("%(template)s: Meta ya no la tiene.") % {"template": template}
    missing.update(status="DELETED", known_at=now - CLOCK_MARGIN, synced_at=now)
    yield _("Meta tiene %(count)d plantillas.") % {"count": listed}


def submit(client: Client, *, now: datetime) -> Iterator[str]:
    """Create at Meta what it does not have of our templates; yields a sentence on each.

    Raises ClientError when the list cannot be read.
    """
    known = {(item.name, item.language) for item in client.list_templates()}
    for template in standard_templates().values():
        if (template.name, template.language) in known:
            yield _("%(name)s: Meta ya la tiene.") % {"name": template.name}
        else:
            yield from _submit(client, template, now)


def apply_change(event: TemplateChanged, *, now: datetime) -> Template:
    """Keep what Meta decided, unless something later is known; the row as it is then."""
    at = event.at or now
    news = {
        field: value
        for field, value in (
            ("status", event.status),
            ("category", event.category),
            ("quality", event.quality),
            ("template_id", event.template_id),
            ("reason", event.reason),
        )
        if value
    }
    template, is_new = Template.objects.get_or_create(
        business_account_id=event.business_account_id,
        name=event.name,
        language=event.language,
        defaults={**news, "known_at": at, "asked_category": _asked_category(event.name)},
    )
    if not is_new:
        Template.objects.filter(pk=template.pk, known_at__lte=at).update(**news, known_at=at)
        template.refresh_from_db()
    _tell_of_change(template, event)
    return template


def _tell_of_change(template: Template, event: TemplateChanged) -> None:
    if Template.MARKETING in (event.category, event.coming_category):
        logger.error("template drift id=%s name=%s outcome=marketing", template.pk, template.name)
    elif event.status and event.status not in (Template.APPROVED, "PENDING"):
        logger.error("template id=%s name=%s status=%s", template.pk, template.name, event.status)
    elif event.quality == "RED":
        logger.error("template id=%s name=%s quality=%s", template.pk, template.name, event.quality)
    else:
        logger.info("template id=%s name=%s aspect=%s", template.pk, template.name, event.aspect)


def _asked_category(name: str) -> str:
    standard = standard_templates().get(name)
    return str(standard.creation["category"]) if standard else ""


def _save(item: ListedTemplate, business_account_id: str, now: datetime) -> Template:
    values: dict[str, Any] = {
        "template_id": item.template_id[:64],
        "status": item.status[:64],
        "category": item.category[:64],
        "quality": item.quality[:64],
        "reason": "" if item.rejected_reason == "NONE" else item.rejected_reason,
        "components": list(item.components),
        "ttl_seconds": item.ttl_seconds,
        "known_at": now - CLOCK_MARGIN,
        "synced_at": now,
    }
    asked = _asked_category(item.name) or item.previous_category
    template, _created = Template.objects.update_or_create(
        business_account_id=business_account_id,
        name=item.name[:512],
        language=item.language[:16],
        defaults=values | ({"asked_category": asked[:64]} if asked else {}),
    )
    return template


def _describe(template: Template, item: ListedTemplate) -> Iterator[str]:
    yield _("%(template)s: %(status)s, %(category)s.") % {
        "template": template,
        "status": template.status or "?",
        "category": template.category or "?",
    }
    if Template.MARKETING in (template.category, item.correct_category) and template.asked_category != (
        Template.MARKETING
    ):
        logger.error("template drift id=%s name=%s outcome=marketing", template.pk, template.name)
        yield _marketing_warning(template.name)
    if template.reason:
        yield _("%(template)s: motivo de Meta: %(reason)s.") % {
            "template": template,
            "reason": template.reason,
        }


def _submit(client: Client, template: StandardTemplate, now: datetime) -> Iterator[str]:
    try:
        created = client.create_template(template.creation)
    except GraphError as error:
        logger.error("template name=%s outcome=refused %s", template.name, error)
        yield _("%(name)s: Meta la rechazó (código %(code)s). %(message)s") % {
            "name": template.name,
            "code": error.subcode or error.code,
            "message": error.user_message or error.details,
        }
        return
    except AnswerLost as error:
        logger.error("template name=%s outcome=answer_lost %s", template.name, error)
        yield _("%(name)s: no llegó la respuesta de Meta. Repita «submit»: no se crea dos veces.") % {
            "name": template.name
        }
        return
    except ClientError as error:
        logger.error("template name=%s outcome=not_reached %s", template.name, error)
        yield _("%(name)s: no se pudo llegar a Meta.") % {"name": template.name}
        return
    _keep_created(client, template, created, now)
    yield _("%(name)s: enviada a Meta; estado %(status)s, categoría %(category)s.") % {
        "name": template.name,
        "status": created.status or "?",
        "category": created.category or "?",
    }
    if created.category == Template.MARKETING:
        logger.error("template drift name=%s outcome=marketing", template.name)
        yield _marketing_warning(template.name)


def _keep_created(
    client: Client, template: StandardTemplate, created: CreatedTemplate, now: datetime
) -> None:
    Template.objects.update_or_create(
        business_account_id=client.business_account_id,
        name=template.name,
        language=template.language,
        defaults={
            "template_id": created.template_id,
            "status": created.status,
            "category": created.category,
            "asked_category": template.creation["category"],
            "components": template.creation["components"],
            "ttl_seconds": template.ttl_seconds,
            "known_at": now - CLOCK_MARGIN,
        },
    )


def _marketing_warning(name: str) -> str:
    return _(
        "¡Atención! %(name)s: Meta la tiene por MARKETING y no por UTILITY. Cuesta más y puede no llegar."
        " Cambie el texto o pida otra revisión en el administrador de WhatsApp."
    ) % {"name": name}
