"""The admin of people who may see their own doctors' rows and nothing else.

Whoever is, or works for, a doctor may work on that doctor's rows; the rights of
Django's groups play no part. A row of somebody else does not exist: 404.
"""

# ruff: noqa: ARG002 (Django asks each right with the row, and ours are of the person)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import BaseModelAdmin
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from appointments.access import AnyUser, ScopedQuerySet, doctors_of

# Django's own classes are generic for the type checker only.
if TYPE_CHECKING:
    Base = BaseModelAdmin[Any]
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
    ModelForm = forms.ModelForm[Any]
else:
    Base, ModelAdmin, TabularInline = BaseModelAdmin, admin.ModelAdmin, admin.TabularInline
    ModelForm = forms.ModelForm


def visible(rows: models.QuerySet[Any], user: AnyUser) -> models.QuerySet[Any]:
    """What the user may see of the rows; of rows that cannot tell whose they are, only ops any."""
    if isinstance(rows, ScopedQuerySet):
        return rows.for_user(user)
    return rows if is_ops(user) else rows.none()


def is_ops(user: AnyUser) -> bool:
    """Whether the user runs the place, and sees all of it."""
    return user.is_active and bool(getattr(user, "is_superuser", False))


def works_here(request: HttpRequest) -> bool:
    """Whether whoever asks is, or acts for, a doctor, or is ops."""
    # A page asks some twenty times.
    known = vars(request)
    if "works_here" not in known:
        known["works_here"] = is_ops(request.user) or doctors_of(request.user).exists()
    return bool(known["works_here"])


class Scoped(Base):
    """Rows, and the choices of every form, through ``for_user``."""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return visible(super().get_queryset(request), request.user)

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> models.QuerySet[Any]:
        # Every choice of a form passes here: foreign keys, many-to-many, inlines.
        ordered = super().get_field_queryset(db, db_field, request)
        rows = db_field.remote_field.model._default_manager.all() if ordered is None else ordered
        return visible(rows, request.user)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return works_here(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return works_here(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return works_here(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return works_here(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return works_here(request)


class ScopedInline(Scoped, TabularInline):
    """Rows beneath another, limited in the same way."""

    extra = 0


class ScopedAdmin(Scoped, ModelAdmin):
    """A model's pages, limited to the rows of the doctors for whom the user acts."""

    show_full_result_count = False
    list_per_page = 50

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        # The row's own words would be the page's title, and stay in the browser's history.
        return super().change_view(request, object_id, form_url, {"subtitle": None, **(extra_context or {})})

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        return super().history_view(request, object_id, {"title": _("Historial"), **(extra_context or {})})

    def response_action(self, request: HttpRequest, queryset: models.QuerySet[Any], *args: Any) -> Any:
        chosen = set(request.POST.getlist(ACTION_CHECKBOX_NAME))
        try:
            mine = self.get_queryset(request).filter(pk__in=chosen).count()
        except (ValidationError, ValueError):
            raise Http404 from None
        if mine != len(chosen):
            raise Http404
        return super().response_action(request, queryset, *args)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only what the list's own filters ask.

        Django lets an address filter by any field of a related row, and the
        answer would tell of rows that the user does not see.
        """
        for path in self._filter_paths(request):
            rest = lookup.removeprefix(path).strip("_").split("__") if lookup.startswith(path) else ["?"]
            if set(rest) <= {"", "id", "pk", "exact", "in", "isnull", "isempty", "gte", "lt"}:
                return True
        try:
            field = self.opts.get_field(lookup.split("__")[0])
        except FieldDoesNotExist:
            return super().lookup_allowed(lookup, value, request)
        return not field.is_relation and super().lookup_allowed(lookup, value, request)

    def _filter_paths(self, request: HttpRequest) -> list[str]:
        listed = self.get_list_filter(request)
        declared = (item[0] if isinstance(item, tuple | list) else item for item in listed)
        return [path for path in declared if isinstance(path, str)]

    def _get_obj_does_not_exist_redirect(self, *_about: Any) -> NoReturn:
        """Django would redirect with a message that names the id."""
        raise Http404


class ScopedRelatedFilter(admin.RelatedFieldListFilter):
    """A list's filter by related rows that names, and accepts, only those the user may see."""

    def field_choices(
        self, field: Any, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[Any]:
        return [
            (str(row.pk), str(row))
            for row in visible(field.remote_field.model._default_manager.all(), request.user)
        ]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        if not set(self.lookup_val or []) <= {pk for pk, _label in self.lookup_choices}:
            return queryset.none()
        return super().queryset(request, queryset)  # type: ignore[return-value]
