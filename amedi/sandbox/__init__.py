"""A stand-in for Meta's Graph API on this machine, with the patient's phone as a web page.

It judges what it gets by Meta's published rules, and knows nothing of the product:
no Django, no database, nothing of reminders, appointments or whatsapp.
"""

from amedi.sandbox.messages import AcceptedMessage, RefusedMessage
from amedi.sandbox.options import SandboxOptions
from amedi.sandbox.phones import NothingToTapError
from amedi.sandbox.sandbox import Sandbox
from amedi.sandbox.templates import Template, template_from_json

__all__ = [
    "AcceptedMessage",
    "NothingToTapError",
    "RefusedMessage",
    "Sandbox",
    "SandboxOptions",
    "Template",
    "template_from_json",
]
