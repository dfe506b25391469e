"""The rules that hold for every doctor until they make their own.

Three days and one day before cut no-shows most (Steiner et al., 2018), and two
hours before the patient sets out. The others wait for somebody to want them.
"""

from django.db import migrations

from reminders.wording import DEFAULT_BODIES, DEFAULT_SUBJECTS

RULES = [
    # type, offset in minutes, unit, enabled
    ("cita_proxima", -4_320, "days", True),
    ("cita_proxima", -1_440, "hours", True),
    ("cita_proxima", -120, "hours", True),
    ("preparacion", -2_880, "days", False),
    ("llegada", -20, "minutes", False),
    ("seguimiento", 1_440, "hours", False),
    ("control", 259_200, "months", False),
]


def create(apps, schema_editor):
    rule = apps.get_model("reminders", "ReminderRule")
    rule.objects.bulk_create(
        rule(
            reminder_type=kind,
            offset_minutes=offset,
            offset_unit=unit,
            is_enabled=enabled,
            channels=["whatsapp", "email"],
            subject_template=DEFAULT_SUBJECTS[kind],
            body_template=DEFAULT_BODIES[kind],
        )
        for kind, offset, unit, enabled in RULES
    )


def remove(apps, schema_editor):
    apps.get_model("reminders", "ReminderRule").objects.filter(doctor=None).delete()


class Migration(migrations.Migration):
    dependencies = [("reminders", "0002_marks")]

    operations = [migrations.RunPython(create, remove)]
