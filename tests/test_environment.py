"""What the environment says is read once; a wrong value stops the start with one clear sentence."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from datetime import time
from itertools import pairwise

import pytest
from django.core.exceptions import ImproperlyConfigured

from amedi import environment

ROOT = environment.BASE_DIR
NAME = "REMINDER_TEST_VALUE"


def names_read() -> set[str]:
    """Every variable that the settings, or the choice of a database, ask for."""
    names = set()
    for file in ("settings.py", "local_postgres.py"):
        for node in ast.walk(ast.parse((ROOT / "amedi" / file).read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("environment."):
                names |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return names


def test_the_example_names_every_variable_that_is_read_and_no_other():
    example = re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert len(example) == len(set(example))
    assert set(example) == names_read()


def test_the_example_says_in_one_line_what_each_variable_means():
    lines = (ROOT / ".env.example").read_text().splitlines()
    for before, line in pairwise(lines):
        if re.match(r"#?[A-Z_]+=", line):
            assert re.fullmatch(r"# [A-Zp].+\.", before), f"{line} needs a sentence above it"


@pytest.mark.parametrize(
    ("read", "value", "sentence"),
    [
        (lambda: environment.text(NAME), "", f"{NAME} is not set"),
        (lambda: environment.text(NAME), "   ", f"{NAME} is not set"),
        (lambda: environment.switch(NAME, default=True), "maybe", f"{NAME} must be true or false"),
        (lambda: environment.number(NAME, 5), "five", f"{NAME} must be a whole number from 1"),
        (lambda: environment.number(NAME, 5), "-1", f"{NAME} must be a whole number from 1"),
        (lambda: environment.number(NAME, 5, most=10), "11", f"{NAME} must be a whole number from 1 to 10"),
        (lambda: environment.number(NAME, 5), "1.5", f"{NAME} must be a whole number"),
        (lambda: environment.address(NAME, "http://a"), "example.org", f"{NAME} must be a web address"),
        (lambda: environment.address(NAME, "http://a"), "ftp://example.org", f"{NAME} must be a web address"),
        (lambda: environment.address(NAME, "http://a"), "http://[::1", f"{NAME} must be a web address"),
        (lambda: environment.address(NAME, "http://a"), "http://a:99999999", f"{NAME} must be a web address"),
        (lambda: environment.number(NAME, 5), "٣", f"{NAME} must be a whole number"),
        (lambda: environment.matching(NAME, r"v[0-9]+", example="v1"), "../x", f"{NAME} must look like v1"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "21:00+02:00-07:00", f"{NAME} must look like"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "21-7 h", f"{NAME} must look like"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "21:00", f"{NAME} must look like"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "25:00-07:00", f"{NAME} must look like"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "1:00-2:00-3:00", f"{NAME} must look like"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(monkeypatch, read, value, sentence):
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(sentence)):
        read()


@pytest.mark.parametrize(
    ("read", "value", "meaning"),
    [
        (lambda: environment.text(NAME, "default"), "", "default"),
        (lambda: environment.switch(NAME, default=False), "Yes", True),
        (lambda: environment.number(NAME, 5), "", 5),
        (lambda: environment.listed(NAME), " a, ,b ,", ["a", "b"]),
        (lambda: environment.address(NAME, "http://a"), "https://example.org/x/", "https://example.org/x"),
        (lambda: environment.clock_range(NAME, "21:00-07:00"), "00:00-00:00", (time(0), time(0))),
    ],
)
def test_a_right_value_means_what_it_says(monkeypatch, read, value, meaning):
    monkeypatch.setenv(NAME, value)
    assert read() == meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REMINDER_QUIET_HOURS", "at night"),
        ("REMINDER_BATCH_SIZE", "many"),
        ("DEBUG", "perhaps"),
        ("SITE_URL", "citas.example.org"),
        ("SECRET_KEY", ""),
        ("DATABASE_URL", "not an address"),
        ("DATABASE_URL", "mysql://somebody@example.org/name"),
        ("DATABASE_URL", "postgresql://somebody@example.org:port/name"),
    ],
)
def test_the_start_stops_with_one_line_that_names_the_variable(name, value):
    started = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 2
    [line] = started.stderr.splitlines()
    assert line.startswith(f"amedi: {name} ")


def test_a_database_that_does_not_answer_is_one_line_without_the_password():
    started = subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": "postgresql://somebody:sekret@127.0.0.1:1/name"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 2
    assert started.stderr.splitlines()[-1].startswith("amedi: no database answers at DATABASE_URL")
    assert "Traceback" not in started.stderr and "sekret" not in started.stderr


def test_the_web_process_does_not_start_on_a_wrong_setting_either():
    for name, value, said in (
        ("REMINDER_BATCH_SIZE", "many", "REMINDER_BATCH_SIZE must be a whole number"),
        ("REMINDER_CHANNELS", "pigeon", "reminders.E001"),
    ):
        started = subprocess.run(
            [sys.executable, "-c", "import amedi.wsgi"],
            cwd=ROOT,
            env={**os.environ, name: value},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert started.returncode == 3
        assert said in started.stderr and "Traceback" not in started.stderr


def test_what_the_process_was_given_wins_over_the_file(tmp_path):
    file = tmp_path / ".env"
    file.write_text("SITE_URL=https://file.example\nREMINDER_BATCH_SIZE=7\n")
    shown = subprocess.run(
        [sys.executable, "-c", "from amedi import settings as s; print(s.SITE_URL, s.REMINDER_BATCH_SIZE)"],
        cwd=ROOT,
        env={**os.environ, "AMEDI_ENV_FILE": str(file), "SITE_URL": "https://given.example"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout.split() == ["https://given.example", "7"]
