"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path
from django.utils.translation import gettext_lazy as _

admin.site.site_header = _("Amedi recordatorios")
admin.site.site_title = _("Amedi recordatorios")
admin.site.index_title = _("Consultorio")

urlpatterns = [
    path("admin/", admin.site.urls),
    path("webhooks/whatsapp/", include("whatsapp.urls")),
]
