"""A webhook post calls a worker of the cluster, and only one when many come at once."""

from __future__ import annotations

import pytest
from django.test import Client
from django_q.models import OrmQ

from appointments import clock
from reminders import tick
from tests.whatsapp_meta import SECRET, posted
from whatsapp import inbox
from whatsapp.models import WebhookPost
from whatsapp.signature import sign

pytestmark = pytest.mark.django_db


def post(number: int) -> None:
    raw = posted({"statuses": [{"id": f"wamid.{number}", "status": "sent", "timestamp": "1796126400"}]})
    headers = {"X-Hub-Signature-256": sign(raw, SECRET)}
    answer = Client().post("/webhooks/whatsapp/", raw, content_type="application/json", headers=headers)
    assert answer.status_code == 200


def test_many_posts_at_once_call_one_worker_who_takes_them_all():
    for number in range(5):
        post(number)
    assert OrmQ.objects.count() == 1
    tick.work_off_posts()
    assert not WebhookPost.objects.unprocessed().exists()


def test_a_post_that_comes_when_the_others_are_taken_calls_another():
    post(1)
    inbox.work_off(now=clock.now())
    post(2)
    assert OrmQ.objects.count() == 2


def test_a_post_that_no_worker_survived_keeps_none_from_being_called():
    post(1)
    WebhookPost.objects.update(claims=WebhookPost.MOST_CLAIMS)
    post(2)
    assert OrmQ.objects.count() == 2
