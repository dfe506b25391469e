"""Who may see what: the one way from a request to rows.

Every list, form, autocomplete, action and view starts at ``for_user``. What a
person may not see does not exist for them: a foreign id is a 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from appointments.models import Doctor

AnyUser = AbstractBaseUser | AnonymousUser
M = TypeVar("M", bound=models.Model)


class ScopedQuerySet(models.QuerySet[M]):
    """Rows that know whose they are."""

    doctor_path: ClassVar[str] = "doctor"
    """The lookup from this model to the doctors whose row it is."""
    is_shared: ClassVar[bool] = False
    """Whether a row may be that of several doctors."""

    def for_user(self, user: AnyUser) -> Self:
        """The rows of the doctors for whom the user acts; all of them for ops.

        A user acts for a doctor by being that doctor or by being on the staff.
        Ops are superusers. Whoever is not logged in sees nothing.
        """
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if getattr(user, "is_superuser", False):
            return self
        mine = {f"{self.doctor_path}__in": doctors_of(user)}
        if not self.is_shared:
            return self.filter(**mine)
        # By subquery: a join would repeat a row for each doctor who shares it.
        return self.filter(pk__in=self.model._base_manager.filter(**mine).values("pk"))


class PublicQuerySet(ScopedQuerySet[M]):
    """Rows that hold nobody's secrets: whoever is logged in sees them all."""

    def for_user(self, user: AnyUser) -> Self:
        return self if user.is_authenticated and user.is_active else self.none()


def doctors_of(user: AnyUser) -> models.QuerySet[Doctor]:
    """The doctors for whom the user acts. Ops, as such, act for none."""
    # From the registry: the models are made of the classes above.
    doctors: type[Doctor] = apps.get_model("appointments", "Doctor")
    if not user.is_authenticated or not user.is_active:
        return doctors._base_manager.none()
    as_staff = doctors.staff.through._base_manager.filter(user_id=user.pk)
    return doctors._base_manager.filter(Q(user_id=user.pk) | Q(pk__in=as_staff.values("doctor_id")))
