"""Postmark in our words: the only place that knows its client, its codes and its webhooks."""
