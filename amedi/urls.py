"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path
from django.utils.translation import gettext_lazy as _
from django_q.models import Failure, OrmQ, Schedule, Success

# In English, and whoever edits a schedule may call any function: `setup_schedules` is the way.
admin.site.unregister([Failure, OrmQ, Schedule, Success])
# Nothing stands at the root.
admin.site.site_url = None
admin.site.site_header = _("Amedi recordatorios")
admin.site.site_title = _("Amedi recordatorios")
admin.site.index_title = _("Consultorio")

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("amedi.health")),
    path("webhooks/whatsapp/", include("whatsapp.urls")),
    path("webhooks/postmark/", include("reminders.postmark.urls")),
    path("sala/", include("reminders.room.urls")),
    path("", include("reminders.patient_pages.urls")),
]
