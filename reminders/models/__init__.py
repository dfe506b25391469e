"""The tables of the product, one subject a file."""

from reminders.models.attempt import DeliveryAttempt
from reminders.models.delivery import ReminderDelivery
from reminders.models.heartbeat import Heartbeat
from reminders.models.mark import Mark, PlanBasis, RulesChange
from reminders.models.preference import ConsentEvent, ContactOptOut, NotificationPreference
from reminders.models.reply import Reply
from reminders.models.rule import ReminderRule

__all__ = [
    "ConsentEvent",
    "ContactOptOut",
    "DeliveryAttempt",
    "Heartbeat",
    "Mark",
    "NotificationPreference",
    "PlanBasis",
    "ReminderDelivery",
    "ReminderRule",
    "Reply",
    "RulesChange",
]
