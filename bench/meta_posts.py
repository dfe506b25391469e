"""Bodies of Meta's webhook that bring receipts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from bench import stage


def status(word: str, *, message_id: str, reference: str, number: str) -> dict[str, Any]:
    """One receipt; ``number`` without the plus."""
    return {
        "id": message_id,
        "status": word,
        "timestamp": str(int(time.time())),
        "recipient_id": number,
        "biz_opaque_callback_data": reference,
        "pricing": {"billable": True, "pricing_model": "PMP", "type": "regular", "category": "utility"},
    }


def post(statuses: Sequence[dict[str, Any]]) -> str:
    """A post with these receipts."""
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "582120000000", "phone_number_id": stage.PHONE_NUMBER_ID},
        "statuses": statuses,
    }
    entry = {"id": stage.BUSINESS_ACCOUNT_ID, "changes": [{"field": "messages", "value": value}]}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry]})
