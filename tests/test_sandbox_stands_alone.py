"""A second opinion is worth something only if it is nobody's echo."""

from __future__ import annotations

import json
import subprocess
import sys

from django.conf import settings


def test_the_stand_ins_know_neither_django_nor_the_product() -> None:
    program = (
        "import sys, json, amedi.sandbox, amedi.sandbox.postmark; "
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert "amedi" in loaded
    assert not loaded & {"django", "appointments", "reminders", "whatsapp"}
