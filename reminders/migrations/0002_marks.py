"""The marks: whoever changes what a timeline depends on leaves a row for the planner.

Triggers, because a save skips bulk writes, ``update()`` and raw SQL. By
statement: a bulk write of a thousand rows costs one insert.
"""

from django.db import migrations

FUNCTIONS = """
CREATE FUNCTION reminders_mark_appointments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT 'appointment', id::text, false, amedi_now(), 0 FROM new_rows;
    ELSE
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT 'appointment', n.id::text, false, amedi_now(), 0
        FROM new_rows n JOIN old_rows o ON o.id = n.id
        WHERE (n.starts_at, n.sequence, n.status, n.doctor_id, n.specialty_id, n.office_id, n.patient_id,
               n.modality, n.booked_at, n.completed_at)
              IS DISTINCT FROM
              (o.starts_at, o.sequence, o.status, o.doctor_id, o.specialty_id, o.office_id, o.patient_id,
               o.modality, o.booked_at, o.completed_at);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reminders_mark_contacts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
    SELECT 'patient', n.id::text, false, amedi_now(), 0
    FROM new_rows n JOIN old_rows o ON o.id = n.id
    WHERE (n.phone, n.email, n.user_id, n.time_zone) IS DISTINCT FROM (o.phone, o.email, o.user_id, o.time_zone);
    RETURN NULL;
END $$;

-- Care, preferences, consent: rows that name the patient.
CREATE FUNCTION reminders_mark_patients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT 'patient', patient_id::text, false, amedi_now(), 0 FROM new_rows;
    END IF;
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT 'patient', patient_id::text, false, amedi_now(), 0 FROM old_rows;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reminders_mark_addresses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT 'address', address, false, amedi_now(), 0 FROM new_rows;
    END IF;
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT 'address', address, false, amedi_now(), 0 FROM old_rows;
    END IF;
    RETURN NULL;
END $$;

-- A rule belongs to a doctor's set, or to the defaults for everybody.
CREATE FUNCTION reminders_mark_rules() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT CASE WHEN doctor_id IS NULL THEN 'everything' ELSE 'doctor' END,
               coalesce(doctor_id::text, ''), true, amedi_now(), 0 FROM new_rows;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT CASE WHEN doctor_id IS NULL THEN 'everything' ELSE 'doctor' END,
               coalesce(doctor_id::text, ''), true, amedi_now(), 0 FROM old_rows;
    ELSE
        -- New words plan nothing anew.
        INSERT INTO reminders_mark (subject, subject_id, changes_rules, at, tries)
        SELECT DISTINCT CASE WHEN owner.id IS NULL THEN 'everything' ELSE 'doctor' END,
               coalesce(owner.id::text, ''), true, amedi_now(), 0
        FROM new_rows n JOIN old_rows o ON o.id = n.id
        CROSS JOIN LATERAL (VALUES (n.doctor_id), (o.doctor_id)) AS owner (id)
        WHERE (n.doctor_id, n.specialty_id, n.reminder_type, n.is_enabled, n.offset_minutes, n.offset_unit,
               n.channels, n.fallback_after_minutes)
              IS DISTINCT FROM
              (o.doctor_id, o.specialty_id, o.reminder_type, o.is_enabled, o.offset_minutes, o.offset_unit,
               o.channels, o.fallback_after_minutes);
    END IF;
    RETURN NULL;
END $$;

-- Since when a rule stands as it is. New words do not make it a new rule.
CREATE FUNCTION reminders_rule_in_force() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT'
       OR (NEW.is_enabled, NEW.doctor_id, NEW.specialty_id, NEW.reminder_type, NEW.offset_minutes, NEW.offset_unit)
          IS DISTINCT FROM
          (OLD.is_enabled, OLD.doctor_id, OLD.specialty_id, OLD.reminder_type, OLD.offset_minutes, OLD.offset_unit)
    THEN
        NEW.in_force_since := amedi_now();
    ELSE
        NEW.in_force_since := OLD.in_force_since;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER reminders_rule_in_force BEFORE INSERT OR UPDATE ON reminders_reminderrule
    FOR EACH ROW EXECUTE FUNCTION reminders_rule_in_force();

CREATE TRIGGER reminders_mark_booked AFTER INSERT ON appointments_appointment
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION reminders_mark_appointments();
CREATE TRIGGER reminders_mark_changed AFTER UPDATE ON appointments_appointment
    REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reminders_mark_appointments();
CREATE TRIGGER reminders_mark_contacts AFTER UPDATE ON appointments_patient
    REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reminders_mark_contacts();
"""

# Table → the function for the marks of its rows, whatever happens to them.
WATCHED = {
    "appointments_care": "reminders_mark_patients",
    "reminders_notificationpreference": "reminders_mark_patients",
    "reminders_consentevent": "reminders_mark_patients",
    "reminders_contactoptout": "reminders_mark_addresses",
    "reminders_reminderrule": "reminders_mark_rules",
}
ROWS = {
    "INSERT": "NEW TABLE AS new_rows",
    "UPDATE": "NEW TABLE AS new_rows OLD TABLE AS old_rows",
    "DELETE": "OLD TABLE AS old_rows",
}
WATCHES = "".join(
    f"CREATE TRIGGER reminders_mark_{event.lower()} AFTER {event} ON {table}"
    f" REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION {function}();\n"
    for table, function in WATCHED.items()
    for event, rows in ROWS.items()
)

APPEND_ONLY = """
CREATE FUNCTION reminders_consent_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'reminders_consentevent is append-only: add the new word as a new row';
END $$;
CREATE TRIGGER reminders_consent_is_append_only BEFORE UPDATE OR DELETE ON reminders_consentevent
    FOR EACH ROW EXECUTE FUNCTION reminders_consent_is_append_only();
"""

DROP = "".join(
    f"DROP FUNCTION {name}() CASCADE;\n"
    for name in (
        "reminders_mark_appointments",
        "reminders_mark_contacts",
        "reminders_mark_patients",
        "reminders_mark_addresses",
        "reminders_mark_rules",
        "reminders_rule_in_force",
        "reminders_consent_is_append_only",
    )
)


class Migration(migrations.Migration):
    dependencies = [("reminders", "0001_initial"), ("appointments", "0002_triggers")]

    operations = [migrations.RunSQL(FUNCTIONS + WATCHES + APPEND_ONLY, DROP)]
