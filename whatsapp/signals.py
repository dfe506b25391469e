"""News for the apps above. Each may come late, twice, and out of order."""

from django.dispatch import Signal

post_stored = Signal()
"""A new webhook post is stored and waits; ``post_id``. Sent robustly, outside any transaction."""

message_received = Signal()
"""Somebody wrote or tapped; ``message`` (InboundMessage), ``event`` (MessageReceived), ``now``.

Sent once per message, in the transaction that stores it: what a receiver raises
undoes both and puts the item into quarantine."""

status_received = Signal()
"""A receipt of a message of ours; ``event`` (StatusReceived), ``now``.

A receiver answers True when the message is its own. As long as nobody does, the
receipt is offered again, for a quarter of an hour: it can be quicker than the
answer to the call that it is about."""

template_changed = Signal()
"""Meta decided about a template; ``template`` (Template), ``event`` (TemplateChanged), ``now``."""

account_changed = Signal()
"""News of our number or account; ``event`` (AccountChanged), ``now``."""
