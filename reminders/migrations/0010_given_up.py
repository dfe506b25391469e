"""By when a message is to arrive, or to be read; and who told the patient by phone."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

ROOM = """
CREATE OR REPLACE FUNCTION reminders_room_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := amedi_now();
    today date := (at AT TIME ZONE 'UTC')::date;
    visits uuid[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        visits := ARRAY(
            SELECT DISTINCT appointment_id FROM new_rows
            WHERE offset_minutes < 0 AND useful_until BETWEEN at - interval '3 days' AND at + interval '3 days');
    ELSIF TG_OP = 'DELETE' THEN
        visits := ARRAY(
            SELECT DISTINCT appointment_id FROM old_rows
            WHERE offset_minutes < 0 AND useful_until BETWEEN at - interval '3 days' AND at + interval '3 days');
    ELSE
        visits := ARRAY(
            SELECT DISTINCT appointment_id FROM (
                SELECT id, appointment_id, channel, replace(status, 'sending', 'pending'), reason, scheduled_for,
                       given_up_at{and_told}
                FROM new_rows
                WHERE offset_minutes < 0
                  AND useful_until BETWEEN at - interval '3 days' AND at + interval '3 days'
                EXCEPT
                SELECT id, appointment_id, channel, replace(status, 'sending', 'pending'), reason, scheduled_for,
                       given_up_at{and_told}
                FROM old_rows
            ) AS changed);
    END IF;
    IF visits <> '{{}}' THEN
        PERFORM pg_notify('amedi_room', doctor_id::text)
        FROM (
            SELECT DISTINCT doctor_id FROM appointments_appointment
            WHERE id = ANY (visits) AND date BETWEEN today - 1 AND today + 1
        ) AS shown;
    END IF;
    RETURN NULL;
END $$;
"""

FELL = """
          'failed' IN (NEW.status, OLD.status)
          OR (NEW.status = 'skipped' AND OLD.status = 'sending')"""

# What is given up makes the next channel due; news of it that comes after all takes the next one
# back, where that has not gone out yet.
CREATE = f"""
DROP TRIGGER reminders_mark_fall ON reminders_reminderdelivery;
CREATE TRIGGER reminders_mark_fall AFTER UPDATE OF status, given_up_at ON reminders_reminderdelivery
    FOR EACH ROW
    WHEN (NEW.given_up_at IS DISTINCT FROM OLD.given_up_at
          OR (NEW.status IS DISTINCT FROM OLD.status AND ({FELL}
          OR NEW.given_up_at IS NOT NULL)))
    EXECUTE FUNCTION reminders_mark_fall();
""" + ROOM.format(and_told=", told_by_phone_at")

DROP = f"""
DROP TRIGGER reminders_mark_fall ON reminders_reminderdelivery;
CREATE TRIGGER reminders_mark_fall AFTER UPDATE OF status ON reminders_reminderdelivery
    FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM OLD.status AND ({FELL}))
    EXECUTE FUNCTION reminders_mark_fall();
""" + ROOM.format(and_told="")

CALLS_FOR_A_PERSON = [
    "refused", "attempts_exhausted", "no_answer", "no_channel", "quiet_hours", "too_late",
]  # fmt: skip


def unreached(condition):
    return models.Index(fields=["appointment"], name="delivery_unreached", condition=condition)


class Migration(migrations.Migration):
    dependencies = [
        ("reminders", "0009_addresses_and_closed_accounts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "reminderdelivery",
            "deliver_by",
            models.DateTimeField(blank=True, null=True, verbose_name="entregado a más tardar"),
        ),
        migrations.AddField(
            "reminderdelivery",
            "read_by",
            models.DateTimeField(blank=True, null=True, verbose_name="leído a más tardar"),
        ),
        migrations.AddField(
            "reminderdelivery",
            "told_by_phone_at",
            models.DateTimeField(blank=True, null=True, verbose_name="avisado por teléfono"),
        ),
        migrations.AddField(
            "reminderdelivery",
            "told_by_phone_by",
            models.ForeignKey(
                blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL,
                related_name="+", to=settings.AUTH_USER_MODEL, verbose_name="avisado por",
            ),
        ),
        migrations.RemoveIndex("reminderdelivery", "delivery_unreached"),
        migrations.AddIndex(
            "reminderdelivery",
            unreached(Q(reason__in=CALLS_FOR_A_PERSON) | Q(status="sent", given_up_at__isnull=False)),
        ),
        migrations.AddIndex(
            "reminderdelivery",
            models.Index(
                fields=["deliver_by"],
                name="delivery_awaited",
                condition=Q(status="sent", deliver_by__isnull=False, given_up_at__isnull=True),
            ),
        ),
        migrations.AddIndex(
            "reminderdelivery",
            models.Index(
                fields=["read_by"],
                name="delivery_unread",
                condition=Q(status="delivered", read_by__isnull=False, given_up_at__isnull=True),
            ),
        ),
        migrations.RunSQL(CREATE, DROP),
    ]
