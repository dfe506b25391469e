"""What each version of a visit was like, so that the patient can be told what changed.

And whether the patient is to be told of the booking at all: an import brings
visits of which the patient has long known.
"""

import django.db.models.deletion
from django.db import migrations, models

REMEMBER = """
CREATE OR REPLACE FUNCTION appointments_remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.status, NEW.sequence, NEW.starts_at)
                            IS NOT DISTINCT FROM (OLD.status, OLD.sequence, OLD.starts_at) THEN
        RETURN NULL;
    END IF;
    INSERT INTO appointments_appointmenthistory
        (appointment_id, from_status, to_status, old_starts_at, new_starts_at, sequence, actor_id, source, at,
         date, start_time, modality, office_id, doctor_id, patient_id)
    VALUES (
        NEW.id,
        CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END,
        NEW.status,
        CASE TG_OP WHEN 'UPDATE' THEN OLD.starts_at END,
        NEW.starts_at,
        NEW.sequence,
        nullif(current_setting('amedi.actor', true), '')::integer,
        coalesce(nullif(current_setting('amedi.source', true), ''), 'system'),
        amedi_now(),
        NEW.date, NEW.start_time, NEW.modality, NEW.office_id, NEW.doctor_id, NEW.patient_id
    );
    RETURN NULL;
END $$;

-- Of versions that were passed before, nobody knows any more.
UPDATE appointments_appointmenthistory h
SET date = a.date, start_time = a.start_time, modality = a.modality,
    office_id = a.office_id, doctor_id = a.doctor_id, patient_id = a.patient_id
FROM appointments_appointment a WHERE a.id = h.appointment_id AND a.sequence = h.sequence;
"""
FORGET = """
CREATE OR REPLACE FUNCTION appointments_remember() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.status, NEW.sequence, NEW.starts_at)
                            IS NOT DISTINCT FROM (OLD.status, OLD.sequence, OLD.starts_at) THEN
        RETURN NULL;
    END IF;
    INSERT INTO appointments_appointmenthistory
        (appointment_id, from_status, to_status, old_starts_at, new_starts_at, sequence, actor_id, source, at)
    VALUES (
        NEW.id,
        CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END,
        NEW.status,
        CASE TG_OP WHEN 'UPDATE' THEN OLD.starts_at END,
        NEW.starts_at,
        NEW.sequence,
        nullif(current_setting('amedi.actor', true), '')::integer,
        coalesce(nullif(current_setting('amedi.source', true), ''), 'system'),
        amedi_now()
    );
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("appointments", "0002_triggers")]

    operations = [
        migrations.AddField(
            model_name="appointment",
            name="announces_booking",
            field=models.BooleanField(
                db_default=True,
                default=True,
                editable=False,
                help_text="Si el paciente debe recibir un aviso de que la cita quedó reservada.",
                verbose_name="avisar de la reserva",
            ),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="date",
            field=models.DateField(null=True, verbose_name="fecha"),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="doctor",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="appointments.doctor",
                verbose_name="médico",
            ),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="modality",
            field=models.CharField(
                blank=True,
                choices=[("in_person", "Presencial"), ("virtual", "Virtual")],
                db_default="",
                max_length=10,
                verbose_name="modalidad",
            ),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="office",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="appointments.office",
                verbose_name="consultorio",
            ),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="patient",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="appointments.patient",
                verbose_name="paciente",
            ),
        ),
        migrations.AddField(
            model_name="appointmenthistory",
            name="start_time",
            field=models.TimeField(null=True, verbose_name="hora"),
        ),
        migrations.RunSQL(REMEMBER, FORGET),
    ]
