"""People, places, appointments, and what happened to them.

``starts_at``, ``ends_at``, ``sequence``, the stamps of a status and the history
belong to database triggers (migration 0002), so that no way of writing escapes
them. Read them back after a write; never set them.
"""

from appointments.models.appointment import Appointment, AppointmentHistory
from appointments.models.availability import Availability, AvailabilityException
from appointments.models.people import Care, Doctor, Office, Patient, Specialty

__all__ = [
    "Appointment",
    "AppointmentHistory",
    "Availability",
    "AvailabilityException",
    "Care",
    "Doctor",
    "Office",
    "Patient",
    "Specialty",
]
