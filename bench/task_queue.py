"""django-q2 with one task for each delivery, for comparison.

    python -m bench.task_queue UNIX_TIME

Puts a task for every due delivery into the queue, beginning at the moment, and
works them off by a cluster with the settings of ``bench.task_settings``.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from uuid import UUID

import django
import requests

PATIENCE = 60.0
"""Seconds without any task done after which the rest is given up."""
_session = requests.Session()


def deliver(pk: UUID) -> None:
    """The task: read the delivery, send it, write down that it was."""
    from django.conf import settings
    from django.db.models.functions import Now

    from bench.origin_loop import template
    from reminders.models import ReminderDelivery

    delivery = ReminderDelivery.objects.select_related("patient", "appointment__doctor").get(pk=pk)
    answer = _session.post(
        f"{settings.WHATSAPP_API_URL}/v26.0/{settings.WHATSAPP_PHONE_NUMBER_ID}/messages",
        json=template(delivery.patient.phone, f"d:{pk}:1"),
        headers={"Authorization": f"Bearer {settings.WHATSAPP_ACCESS_TOKEN}"},
        timeout=20,
    )
    message_id = answer.json()["messages"][0]["id"]
    ReminderDelivery.objects.filter(pk=pk).update(status="sent", message_id=message_id, sent_at=Now())


def work(begin: float) -> None:
    """Start a cluster, wait for the moment, put the tasks in, and stay until they are done."""
    from django_q.tasks import async_task

    from appointments import clock
    from reminders.models import ReminderDelivery

    with subprocess.Popen([sys.executable, "manage.py", "qcluster"]):
        time.sleep(max(0.0, begin - time.time()))
        due = list(ReminderDelivery.objects.due(clock.now()).values_list("pk", flat=True))
        for pk in due:
            async_task("bench.task_queue.deliver", pk)
        left, seen_at = len(due), time.monotonic()
        while left and time.monotonic() < seen_at + PATIENCE:
            time.sleep(0.2)
            if (now_left := ReminderDelivery.objects.due(clock.now()).count()) < left:
                left, seen_at = now_left, time.monotonic()
        print(len(due) - left, flush=True)
        signal.pause()


if __name__ == "__main__":
    django.setup()
    work(float(sys.argv[1]))
