"""Tells the open rooms which doctors' day has changed, whoever changed it.

Triggers, because the room must show every path of change: verbs, bulk actions,
``update()``, imports, receipts, raw SQL. A notification names a doctor and
nothing else; Postgres keeps one of equal ones per transaction, so that a bulk of
a thousand rows is one per doctor. Visits that no room shows today notify nobody.
"""

from django.db import migrations

# A day in any zone is UTC's, the one before or the one after.
# Sets are subtracted, and not joined by id: without statistics of the transition
# tables a join may be planned as a loop in a loop.
FUNCTIONS = """
CREATE FUNCTION reminders_room_visits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    today date := (amedi_now() AT TIME ZONE 'UTC')::date;
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM pg_notify('amedi_room', doctor_id::text)
        FROM (SELECT DISTINCT doctor_id FROM new_rows WHERE date BETWEEN today - 1 AND today + 1) AS shown;
    ELSE
        -- A visit that leaves a day, or a doctor, leaves a room.
        PERFORM pg_notify('amedi_room', doctor_id::text)
        FROM (
            SELECT DISTINCT doctor_id FROM (
                (SELECT id, doctor_id, patient_id, office_id, date, start_time, starts_at, status, modality,
                        is_overbooked
                 FROM new_rows WHERE date BETWEEN today - 1 AND today + 1
                 EXCEPT
                 SELECT id, doctor_id, patient_id, office_id, date, start_time, starts_at, status, modality,
                        is_overbooked
                 FROM old_rows)
                UNION ALL
                (SELECT id, doctor_id, patient_id, office_id, date, start_time, starts_at, status, modality,
                        is_overbooked
                 FROM old_rows WHERE date BETWEEN today - 1 AND today + 1
                 EXCEPT
                 SELECT id, doctor_id, patient_id, office_id, date, start_time, starts_at, status, modality,
                        is_overbooked
                 FROM new_rows)
            ) AS changed
        ) AS shown;
    END IF;
    RETURN NULL;
END $$;

-- Only reminders before the visit are shown, and `useful_until` is near their visit:
-- most rows are sorted out before anything is joined. A claim changes nothing to see.
CREATE FUNCTION reminders_room_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
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
                       given_up_at
                FROM new_rows
                WHERE offset_minutes < 0
                  AND useful_until BETWEEN at - interval '3 days' AND at + interval '3 days'
                EXCEPT
                SELECT id, appointment_id, channel, replace(status, 'sending', 'pending'), reason, scheduled_for,
                       given_up_at
                FROM old_rows
            ) AS changed);
    END IF;
    IF visits <> '{}' THEN
        PERFORM pg_notify('amedi_room', doctor_id::text)
        FROM (
            SELECT DISTINCT doctor_id FROM appointments_appointment
            WHERE id = ANY (visits) AND date BETWEEN today - 1 AND today + 1
        ) AS shown;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reminders_room_patients() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    today date := (amedi_now() AT TIME ZONE 'UTC')::date;
    patients bigint[] := ARRAY(
        SELECT id FROM (
            SELECT id, full_name, phone FROM new_rows EXCEPT SELECT id, full_name, phone FROM old_rows
        ) AS changed);
BEGIN
    IF patients <> '{}' THEN
        PERFORM pg_notify('amedi_room', doctor_id::text)
        FROM (
            SELECT DISTINCT doctor_id FROM appointments_appointment
            WHERE patient_id = ANY (patients) AND date BETWEEN today - 1 AND today + 1
        ) AS shown;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reminders_room_office() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    today date := (amedi_now() AT TIME ZONE 'UTC')::date;
BEGIN
    PERFORM pg_notify('amedi_room', doctor_id::text)
    FROM (
        SELECT DISTINCT doctor_id FROM appointments_appointment
        WHERE office_id = NEW.id AND date BETWEEN today - 1 AND today + 1
    ) AS shown;
    RETURN NULL;
END $$;

CREATE FUNCTION reminders_room_doctor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('amedi_room', NEW.id::text);
    RETURN NULL;
END $$;
"""

TRIGGERS = """
CREATE TRIGGER reminders_room_booked AFTER INSERT ON appointments_appointment
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_visits();
CREATE TRIGGER reminders_room_changed AFTER UPDATE ON appointments_appointment
    REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_visits();

CREATE TRIGGER reminders_room_planned AFTER INSERT ON reminders_reminderdelivery
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_deliveries();
CREATE TRIGGER reminders_room_changed AFTER UPDATE ON reminders_reminderdelivery
    REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_deliveries();
CREATE TRIGGER reminders_room_removed AFTER DELETE ON reminders_reminderdelivery
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_deliveries();

CREATE TRIGGER reminders_room_changed AFTER UPDATE ON appointments_patient
    REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reminders_room_patients();
CREATE TRIGGER reminders_room_renamed AFTER UPDATE ON appointments_office
    FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION reminders_room_office();
CREATE TRIGGER reminders_room_renamed AFTER UPDATE ON appointments_doctor
    FOR EACH ROW WHEN ((OLD.title, OLD.name) IS DISTINCT FROM (NEW.title, NEW.name))
    EXECUTE FUNCTION reminders_room_doctor();
"""

# For the turns of a day: who has arrived since midnight, in the order of arrival.
INDEX = """
CREATE INDEX reminders_room_arrivals ON appointments_appointmenthistory (at)
    WHERE to_status IN ('checked_in', 'in_consultation');
"""

DROP = "DROP INDEX reminders_room_arrivals;\n" + "".join(
    f"DROP FUNCTION reminders_room_{name}() CASCADE;\n"
    for name in ("visits", "deliveries", "patients", "office", "doctor")
)


class Migration(migrations.Migration):
    dependencies = [("reminders", "0005_notifications"), ("appointments", "0002_triggers")]

    operations = [migrations.RunSQL(FUNCTIONS + TRIGGERS + INDEX, DROP)]
