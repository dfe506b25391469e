"""What came in, to be looked at. Many patients' words stand here: ops only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from whatsapp.clean import shorten
from whatsapp.models import InboundMessage, QuarantinedItem, StatusEvent, Template, WebhookPost

# Django's class takes no type argument when it runs.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

SHOWN_OF_BODY = 20_000


class OnlyLookedAt(ModelAdmin):
    """A list and its pages for superusers; nothing is added, changed or deleted."""

    # Counting a large table takes longer than showing a page of it.
    show_full_result_count = False
    list_per_page = 50

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._is_ops(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._is_ops(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @staticmethod
    def _is_ops(request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)


@admin.register(WebhookPost)
class WebhookPostAdmin(OnlyLookedAt):
    list_display = ["id", "received_at", "processed_at", "claims", "error"]
    list_filter: ClassVar = [("processed_at", admin.EmptyFieldListFilter)]
    fields = ["sha256", "received_at", "claimed_until", "claims", "processed_at", "error", "readable_body"]
    readonly_fields = ["readable_body"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookPost]:
        posts = super().get_queryset(request)
        # The list needs none of the bodies, which may have megabytes.
        is_list = request.resolver_match is not None and request.resolver_match.url_name == (
            "whatsapp_webhookpost_changelist"
        )
        return posts.defer("body") if is_list else posts

    @admin.display(description=_("cuerpo"))
    def readable_body(self, post: WebhookPost) -> str:
        return shorten(bytes(post.body).decode("utf-8", errors="replace").replace("\x00", "�"), SHOWN_OF_BODY)


@admin.register(QuarantinedItem)
class QuarantinedItemAdmin(OnlyLookedAt):
    list_display = ["id", "post_id", "path", "reason", "created_at"]
    list_filter = ["reason"]


@admin.register(InboundMessage)
class InboundMessageAdmin(OnlyLookedAt):
    list_display = ["id", "type", "from_phone", "from_user_id", "sent_at", "received_at"]
    list_filter = ["type", "is_group"]
    search_fields = ["=from_phone", "=from_user_id", "=wamid"]


@admin.register(StatusEvent)
class StatusEventAdmin(OnlyLookedAt):
    list_display = ["id", "status", "reference", "at", "settled_at"]
    list_filter: ClassVar = ["status", ("settled_at", admin.EmptyFieldListFilter)]
    search_fields = ["=wamid", "=reference"]


@admin.register(Template)
class TemplateAdmin(OnlyLookedAt):
    list_display = ["name", "language", "status", "category", "quality", "usable", "synced_at"]
    list_filter = ["status", "category"]

    @admin.display(description=_("se puede usar"), boolean=True)
    def usable(self, template: Template) -> bool:
        return template.is_usable
