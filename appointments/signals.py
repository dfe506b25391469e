"""News for the apps above, sent by the verbs of booking."""

from django.dispatch import Signal

changed = Signal()
"""A verb, or a deletion, changed a visit; ``appointment_id`` names it, ``source`` says by which way
(AppointmentHistory.Source). Sent inside its transaction."""

line_read = Signal()
"""The import took a line in; ``appointment_id``, ``patient_id`` and ``accepts_whatsapp``
(True, False or None for not said) tell of it, ``now`` when. Sent inside the line's own transaction,
so that what a receiver writes stands or falls with the line."""
