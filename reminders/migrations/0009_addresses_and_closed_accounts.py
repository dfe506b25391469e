"""Room for the longest address that mail allows, and marks for accounts that close or open.

Wider text is told to the catalogue only: no row is written anew.
"""

from django.conf import settings
from django.db import migrations, models

CREATE = """
-- Whether the application's inbox reaches a patient hangs on the account.
CREATE FUNCTION reminders_mark_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
    SELECT 'patient', id::text, false, amedi_now(), 0 FROM appointments_patient WHERE user_id = NEW.id;
    RETURN NULL;
END $$;

-- By row and with a condition: a login writes its row too, and costs nothing.
CREATE TRIGGER reminders_mark_account AFTER UPDATE OF is_active ON auth_user
    FOR EACH ROW WHEN (NEW.is_active IS DISTINCT FROM OLD.is_active)
    EXECUTE FUNCTION reminders_mark_account();
"""
DROP = "DROP FUNCTION reminders_mark_account() CASCADE;"


def address(**options):
    return models.CharField(max_length=320, **options)


class Migration(migrations.Migration):
    dependencies = [
        ("reminders", "0008_fewer_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField("reminderdelivery", "address", address(blank=True, verbose_name="escrito a")),
        migrations.AlterField("reply", "address", address(blank=True, verbose_name="escrito a")),
        migrations.AlterField("deliveryattempt", "address", address(verbose_name="escrito a")),
        migrations.AlterField("contactoptout", "address", address(verbose_name="número o dirección")),
        migrations.AlterField("retiredcontact", "address", address(verbose_name="dirección")),
        # An address that wants nothing more is what a mark names.
        migrations.AlterField("mark", "subject_id", address(blank=True)),
        migrations.RunSQL(CREATE, DROP),
    ]
