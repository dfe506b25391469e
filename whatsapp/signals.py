"""News for the apps above. Each may come late, twice, and out of order."""

from django.dispatch import Signal

post_stored = Signal()
"""A new webhook post is stored and waits; ``post`` (WebhookPost). Sent robustly, outside any transaction."""

message_received = Signal()
"""Somebody wrote or tapped; ``message`` (InboundMessage), ``event`` (MessageReceived), ``now``.

Sent once per message, in the transaction that stores it: what a receiver raises
undoes both and puts the item into quarantine."""

statuses_received = Signal()
"""Receipts of messages of ours; ``events`` (a list of StatusReceived), ``now``.

A receiver answers with a list that says of each, in their order, whether the
message is its own. As long as nobody says so, the receipt is offered again, for
a quarter of an hour: it can be quicker than the answer to the call that it is
about. What a receiver raises undoes the offer of all, and each comes once more
by itself."""

template_changed = Signal()
"""Meta decided about a template; ``template`` (Template), ``event`` (TemplateChanged), ``now``."""

account_changed = Signal()
"""News of our number or account; ``event`` (AccountChanged), ``now``."""
