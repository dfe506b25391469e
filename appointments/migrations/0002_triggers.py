"""What a visit derives, whoever writes it: instants, version, stamps, history.

Triggers, because ``save()`` is skipped by ``update()``, ``bulk_create()`` and
every client that speaks SQL.
"""

from django.db import migrations

CLOCK = """
CREATE FUNCTION amedi_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(nullif(current_setting('amedi.now', true), '')::timestamptz, clock_timestamp())
$$;
COMMENT ON FUNCTION amedi_now() IS
    'The one clock. The transaction-local setting amedi.now replaces it in simulations.';
"""

# AT TIME ZONE moves a skipped time forward by the gap, as we want, but takes the
# second of a repeated one; the offset from a day before gives the first.
INSTANT = """
CREATE FUNCTION appointments_instant(local_date date, local_time time, zone text)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    wall timestamp := local_date + local_time;
    usual timestamptz := wall AT TIME ZONE zone;
    day_before timestamptz := usual - interval '1 day';
    first timestamptz := (wall - ((day_before AT TIME ZONE zone) - (day_before AT TIME ZONE 'UTC')))
                         AT TIME ZONE 'UTC';
BEGIN
    IF first < usual AND (first AT TIME ZONE zone) = wall THEN
        RETURN first;
    END IF;
    RETURN usual;
END $$;
"""

DERIVE = """
CREATE FUNCTION appointments_derive() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := amedi_now();
    zone text;
    is_other_visit boolean := false;
    is_new_status boolean := true;
BEGIN
    IF TG_OP = 'INSERT' OR NEW.office_id IS DISTINCT FROM OLD.office_id THEN
        -- A correction of the zone waits for us, and then finds this visit.
        SELECT time_zone INTO zone FROM appointments_office WHERE id = NEW.office_id FOR SHARE;
    ELSE
        SELECT time_zone INTO zone FROM appointments_office WHERE id = NEW.office_id;
    END IF;
    IF zone IS NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'appointments_appointment: no such office';
    END IF;
    NEW.starts_at := appointments_instant(NEW.date, NEW.start_time, zone);
    NEW.ends_at := NEW.starts_at + make_interval(mins => NEW.duration_minutes);

    IF TG_OP = 'INSERT' THEN
        NEW.sequence := 0;
        NEW.sequence_at := at;
        NEW.created_at := at;
        NEW.confirmed_at := NULL;
        NEW.checked_in_at := NULL;
        NEW.completed_at := NULL;
        NEW.cancelled_at := NULL;
    ELSE
        NEW.sequence := OLD.sequence;
        NEW.sequence_at := OLD.sequence_at;
        NEW.created_at := OLD.created_at;
        -- A save() of an object read earlier brings stale stamps along.
        NEW.confirmed_at := OLD.confirmed_at;
        NEW.checked_in_at := OLD.checked_in_at;
        NEW.completed_at := OLD.completed_at;
        NEW.cancelled_at := OLD.cancelled_at;
        is_other_visit :=
            (NEW.date, NEW.start_time, NEW.office_id, NEW.modality, NEW.doctor_id, NEW.patient_id)
            IS DISTINCT FROM
            (OLD.date, OLD.start_time, OLD.office_id, OLD.modality, OLD.doctor_id, OLD.patient_id);
        -- A confirmation belongs to one version: what was said of the old visit is void.
        IF is_other_visit AND NEW.status = OLD.status AND NEW.status IN ('confirmed', 'checked_in') THEN
            NEW.status := 'scheduled';
        END IF;
        IF is_other_visit OR (OLD.status = 'cancelled' AND NEW.status <> 'cancelled') THEN
            NEW.sequence := OLD.sequence + 1;
            NEW.sequence_at := at;
        END IF;
        is_new_status := NEW.status <> OLD.status;
    END IF;

    IF is_new_status THEN
        CASE NEW.status
            WHEN 'confirmed' THEN NEW.confirmed_at := at;
            WHEN 'checked_in' THEN NEW.checked_in_at := at;
            WHEN 'completed' THEN NEW.completed_at := at;
            WHEN 'cancelled' THEN NEW.cancelled_at := at;
            ELSE NULL;
        END CASE;
    END IF;
    IF NEW.status = 'scheduled' THEN
        NEW.confirmed_at := NULL;
    END IF;
    IF NEW.status IN ('scheduled', 'confirmed') THEN
        NEW.checked_in_at := NULL;
    END IF;
    IF NEW.status <> 'completed' THEN
        NEW.completed_at := NULL;
    END IF;
    IF NEW.status <> 'cancelled' THEN
        NEW.cancelled_at := NULL;
    END IF;

    -- Two that take one time at once would each wait for the other in the
    -- exclusion constraint, and die as a deadlock: let them queue here instead.
    IF NOT NEW.is_overbooked AND NEW.status NOT IN ('cancelled', 'no_show') AND (
        TG_OP = 'INSERT'
        OR OLD.is_overbooked
        OR OLD.status IN ('cancelled', 'no_show')
        OR (NEW.doctor_id, NEW.starts_at, NEW.ends_at)
           IS DISTINCT FROM (OLD.doctor_id, OLD.starts_at, OLD.ends_at)
    ) THEN
        PERFORM FROM appointments_doctor WHERE id = NEW.doctor_id FOR NO KEY UPDATE;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER appointments_derive BEFORE INSERT OR UPDATE ON appointments_appointment
    FOR EACH ROW EXECUTE FUNCTION appointments_derive();
"""

HISTORY = """
CREATE FUNCTION appointments_remember() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER appointments_remember AFTER INSERT OR UPDATE ON appointments_appointment
    FOR EACH ROW EXECUTE FUNCTION appointments_remember();
"""

# Erasing a visit would leave a patient at a closed door: it is cancelled instead.
KEEP = """
CREATE FUNCTION appointments_cancel_instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE appointments_appointment SET status = 'cancelled'
    WHERE id = OLD.id AND status IN ('scheduled', 'confirmed', 'checked_in');
    RETURN NULL;
END $$;

CREATE TRIGGER appointments_cancel_instead BEFORE DELETE ON appointments_appointment
    FOR EACH ROW EXECUTE FUNCTION appointments_cancel_instead();
"""

# The wall clock of a visit stands when the zone of its place is corrected.
ZONE = """
CREATE FUNCTION appointments_rezone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE appointments_appointment SET office_id = office_id
    WHERE office_id = NEW.id AND starts_at > amedi_now() - interval '1 day';
    RETURN NULL;
END $$;

CREATE TRIGGER appointments_rezone AFTER UPDATE ON appointments_office
    FOR EACH ROW WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone)
    EXECUTE FUNCTION appointments_rezone();
"""

DROP = """
DROP FUNCTION appointments_rezone() CASCADE;
DROP FUNCTION appointments_cancel_instead() CASCADE;
DROP FUNCTION appointments_remember() CASCADE;
DROP FUNCTION appointments_derive() CASCADE;
DROP FUNCTION appointments_instant(date, time, text);
DROP FUNCTION amedi_now();
"""


class Migration(migrations.Migration):
    dependencies = [("appointments", "0001_initial")]

    operations = [migrations.RunSQL(CLOCK + INSTANT + DERIVE + HISTORY + KEEP + ZONE, DROP)]
