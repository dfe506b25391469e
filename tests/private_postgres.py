"""Gives each test run a database server of its own, before Django reads its settings.

TEST_DATABASE_URL names another server instead, to run the suite on an older
Postgres. Nobody's .env and nobody's DATABASE_URL reaches a test.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

os.environ["AMEDI_ENV_FILE"] = ""
OURS = ("WHATSAPP_", "REMINDER_", "POSTMARK_", "EMAIL_", "DEFAULT_FROM_")
for name in [name for name in os.environ if name.startswith(OURS)]:
    del os.environ[name]

from amedi.local_postgres import Server  # noqa: E402

if "TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
else:
    # Under /tmp, which the server's own user can enter when root runs the tests.
    home = Path(tempfile.mkdtemp(prefix="amedi-test-"))
    home.chmod(0o711)
    server = Server(home)

    @atexit.register
    def stop_server() -> None:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)

    # A run that is told to end must reach atexit, or its server would outlive it.
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    os.environ["DATABASE_URL"] = server.start()

os.environ.update(
    SECRET_KEY="a-key-for-tests-only-0123456789-abcdefghijklmnopqrstuvwxyz",
    WHATSAPP_PHONE_NUMBER_ID="200000000000002",
    WHATSAPP_BUSINESS_ACCOUNT_ID="100000000000001",
    WHATSAPP_ACCESS_TOKEN="test-access-token-not-real",
    WHATSAPP_APP_SECRET="test-app-secret-not-real",
    WHATSAPP_VERIFY_TOKEN="test-verify-token-not-real",
    # Or the suite would fail at night. Tests of quiet hours set their own.
    REMINDER_QUIET_HOURS="00:00-00:00",
)
