"""A stand-in for Postmark's API on this machine, with the patients' inboxes as web pages.

It judges what it gets by Postmark's published rules, and knows nothing of the product:
no Django, no database, nothing of reminders, appointments or whatsapp.
"""

from amedi.sandbox.postmark.inboxes import NoSuchMailError
from amedi.sandbox.postmark.mails import AcceptedMail, RefusedMail
from amedi.sandbox.postmark.one_click import NoOneClickError
from amedi.sandbox.postmark.options import PostmarkOptions
from amedi.sandbox.postmark.postmark import Postmark

__all__ = [
    "AcceptedMail",
    "NoOneClickError",
    "NoSuchMailError",
    "Postmark",
    "PostmarkOptions",
    "RefusedMail",
]
