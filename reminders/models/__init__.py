"""The tables of the product, one subject a file."""

from reminders.models.attempt import DeliveryAttempt
from reminders.models.delivery import ReminderDelivery, Unreached
from reminders.models.heartbeat import Heartbeat
from reminders.models.mark import Mark, PlanBasis, RulesChange
from reminders.models.meter import Meter
from reminders.models.notification import Notification, RetiredContact
from reminders.models.preference import ConsentEvent, ContactOptOut, NotificationPreference
from reminders.models.reply import Reply
from reminders.models.rule import ReminderRule

__all__ = [
    "ConsentEvent",
    "ContactOptOut",
    "DeliveryAttempt",
    "Heartbeat",
    "Mark",
    "Meter",
    "Notification",
    "NotificationPreference",
    "PlanBasis",
    "ReminderDelivery",
    "ReminderRule",
    "Reply",
    "RetiredContact",
    "RulesChange",
    "Unreached",
]
