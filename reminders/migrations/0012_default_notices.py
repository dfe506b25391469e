"""The notices that every doctor's patients get: each change of a visit has to be told.

They tell of what happens from now on; what happened before, patients know.
"""

from django.db import migrations

from reminders.wording import DEFAULT_BODIES, DEFAULT_SUBJECTS

NOTICES = ("reserva", "cambio", "cancelacion")


def create(apps, schema_editor):
    rule = apps.get_model("reminders", "ReminderRule")
    rule.objects.bulk_create(
        rule(
            reminder_type=kind,
            offset_minutes=0,
            offset_unit="minutes",
            channels=["whatsapp", "email"],
            subject_template=DEFAULT_SUBJECTS[kind],
            body_template=DEFAULT_BODIES[kind],
        )
        for kind in NOTICES
    )


def remove(apps, schema_editor):
    apps.get_model("reminders", "ReminderRule").objects.filter(reminder_type__in=NOTICES).delete()


class Migration(migrations.Migration):
    dependencies = [("reminders", "0011_notices")]

    operations = [migrations.RunPython(create, remove)]
