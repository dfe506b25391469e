"""``manage.py sandbox`` serves what the settings say, or says what is wrong in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings as project
from django.core.management import CommandError, call_command

from amedi.sandbox import Sandbox
from amedi.sandbox.postmark import Postmark
from tests.sandbox_requests import NAMED_TEMPLATE


def test_it_serves_the_projects_templates_until_it_is_told_to_stop() -> None:
    with subprocess.Popen(
        [sys.executable, "manage.py", "sandbox", "--port", "0"],
        cwd=project.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[3].rstrip(";")
            answer = requests.get(
                f"{address}/v26.0/{project.WHATSAPP_BUSINESS_ACCOUNT_ID}/message_templates",
                params={"limit": 100},
                headers={"Authorization": f"Bearer {project.WHATSAPP_ACCESS_TOKEN}"},
                timeout=10,
            )
        finally:
            process.terminate()
        assert process.wait(30) == 0
    files = {path.stem for path in project.WHATSAPP_TEMPLATES_DIR.glob("*.json")}
    assert {template["name"] for template in answer.json()["data"]} == files


def test_it_serves_the_inboxes_where_there_is_an_account_at_postmark() -> None:
    account = {"POSTMARK_SERVER_TOKEN": "a-token", "POSTMARK_WEBHOOK_SECRET": "user:password"}
    with subprocess.Popen(
        [sys.executable, "manage.py", "sandbox", "--port", "0", "--mail-port", "0"],
        cwd=project.BASE_DIR,
        env=os.environ | account,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            line = process.stdout.readline()
            address = line.split()[4].rstrip(";")
            answer = requests.get(
                f"{address}/messages/outbound",
                params={"count": 1, "offset": 0},
                headers={"Accept": "application/json", "X-Postmark-Server-Token": "a-token"},
                timeout=10,
            )
        finally:
            process.terminate()
        assert process.wait(30) == 0
    assert answer.json() == {"TotalCount": 0, "Messages": []}
    assert line.endswith("/webhooks/postmark/tracking/\n")


@pytest.mark.parametrize("secret", ["", "no-colon"])
def test_an_account_at_postmark_needs_its_webhooks_secret(settings: Any, secret: str) -> None:
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "a-token", secret
    with pytest.raises(CommandError, match="POSTMARK_WEBHOOK_SECRET is not user:password"):
        call_command("sandbox", port=0, mail_port=0)


@pytest.mark.parametrize("name", ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID"])
def test_a_missing_setting_is_named(settings: Any, name: str) -> None:
    setattr(settings, name, "")
    with pytest.raises(CommandError, match=f"{name} is not set"):
        call_command("sandbox", port=0)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (json.dumps(NAMED_TEMPLATE), r"mine\.json would be refused \(2388043\)"),
        ("{}", r"mine\.json would be refused \(100\)"),
        ("[]", r"mine\.json is not the JSON of a template"),
        ("{", r"mine\.json is not the JSON of a template"),
    ],
)
def test_a_template_that_meta_would_refuse_is_named(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(CommandError, match=sentence):
        call_command("sandbox", port=0, templates=tmp_path)


def test_a_port_that_is_taken_is_named() -> None:
    with Sandbox() as other:
        port = int(other.url.rpartition(":")[2])
        with pytest.raises(CommandError, match=f"cannot listen at port {port}"):
            call_command("sandbox", port=port)


def test_a_mail_port_that_is_taken_is_named_and_nothing_stays_open(settings: Any) -> None:
    settings.POSTMARK_SERVER_TOKEN, settings.POSTMARK_WEBHOOK_SECRET = "a-token", "user:password"
    with Postmark() as other:
        port = int(other.url.rpartition(":")[2])
        with pytest.raises(CommandError, match=f"cannot listen at port {port}"):
            call_command("sandbox", port=0, mail_port=port)
