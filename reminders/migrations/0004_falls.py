"""A step that ends without success marks its visit: the rule's next channel is due at once.

A trigger, so that no way in which a row ends can forget it. Good news that comes
after all marks it too: the next channel, where it has not gone out yet, is not
needed any more.
"""

from django.db import migrations, models

CREATE = """
CREATE FUNCTION reminders_mark_fall() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
    VALUES ('appointment', NEW.appointment_id::text, false, amedi_now(), 0);
    RETURN NULL;
END $$;

-- By row and with a condition: it costs nothing where nothing fell.
CREATE TRIGGER reminders_mark_fall AFTER UPDATE OF status ON reminders_reminderdelivery
    FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM OLD.status
          AND ('failed' IN (NEW.status, OLD.status)
               OR (NEW.status = 'skipped' AND OLD.status = 'sending')))
    EXECUTE FUNCTION reminders_mark_fall();

-- Dead rows of a busy morning are cleared soon.
ALTER TABLE reminders_reminderdelivery SET (autovacuum_vacuum_scale_factor = 0.02);
"""
DROP = """
ALTER TABLE reminders_reminderdelivery RESET (autovacuum_vacuum_scale_factor);
DROP FUNCTION reminders_mark_fall() CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("reminders", "0003_default_rules")]

    operations = [
        migrations.RunSQL(CREATE, DROP),
        migrations.CreateModel(
            name="Unreached",
            fields=[],
            options={
                "verbose_name": "paciente por llamar",
                "verbose_name_plural": "pacientes por llamar",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("reminders.reminderdelivery",),
        ),
        migrations.AddIndex(
            model_name="reminderdelivery",
            index=models.Index(
                fields=["appointment"],
                name="delivery_unreached",
                condition=models.Q(
                    reason__in=[
                        "refused",
                        "attempts_exhausted",
                        "no_answer",
                        "no_channel",
                        "quiet_hours",
                        "too_late",
                    ]
                ),
            ),
        ),
    ]
