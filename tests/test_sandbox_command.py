"""``manage.py sandbox`` serves what the settings say, or says what is wrong in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings as project
from django.core.management import CommandError, call_command

from amedi.sandbox import Sandbox
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
