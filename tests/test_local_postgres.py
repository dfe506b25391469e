"""The embedded server starts once, whoever asks, however it was left, wherever the project lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from amedi.local_postgres import Server

START = """
import sys
from pathlib import Path
from amedi.local_postgres import Server
Server(Path(sys.argv[1])).start()
"""


@pytest.fixture
def server() -> Iterator[Server]:
    # Under /tmp, which the server's own user can enter when root runs the tests.
    parent = Path(tempfile.mkdtemp(prefix="amedi-test-"))
    parent.chmod(0o711)
    server = Server(parent / "a folder with spaces")
    yield server
    server.stop()
    shutil.rmtree(parent)


def postmaster(server: Server) -> psutil.Process:
    [pid_file] = server.home.glob("run/data*/postmaster.pid")
    return psutil.Process(int(pid_file.read_text().split()[0]))


def answer(server: Server) -> int:
    with psycopg.connect(server.url) as connection:
        return connection.execute("SELECT 1").fetchone()[0]


def test_it_starts_in_a_folder_with_spaces_and_a_second_start_finds_it(server):
    url = server.start()
    first = postmaster(server)
    assert answer(server) == 1
    assert server.start() == url
    assert postmaster(server) == first


def test_four_starts_at_once_make_one_server(server):
    starters = [subprocess.Popen([sys.executable, "-c", START, str(server.home)]) for _ in range(4)]
    assert [starter.wait(timeout=60) for starter in starters] == [0, 0, 0, 0]
    assert answer(server) == 1
    servers = [p for p in psutil.process_iter() if str(server.socket_folder) in " ".join(_command_of(p))]
    assert servers == [postmaster(server)]


def test_it_starts_again_after_its_server_was_killed(server):
    server.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        # What is written in the last second may be lost; see OPTIONS.
        connection.execute("CHECKPOINT")
    postmaster(server).kill()
    server.start()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_a_stopped_server_leaves_no_process_and_may_be_stopped_again(server):
    server.start()
    process = postmaster(server)
    server.stop()
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert not server.is_running()
    server.stop()


def test_only_its_own_user_can_reach_it(server):
    server.start()
    assert server.socket_folder.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is lent another user's rights")
def test_root_opens_none_of_its_folders_to_others(server):
    closed = server.home.parent / "closed"
    closed.mkdir(mode=0o700)
    inside = Server(closed / "home")
    inside.start()
    try:
        assert answer(inside) == 1
        assert closed.stat().st_mode & 0o077 == 0
    finally:
        inside.stop()
        shutil.rmtree(inside.home)


def _command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
