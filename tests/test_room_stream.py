"""The live stream, by a real uvicorn: who hears what, how often, and what it outlives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import requests
from django.test import Client

from appointments import booking
from appointments.models import Appointment
from reminders.room.checks import stream_is_of_the_same_host
from reminders.room.stream import LISTENER
from tests.engine import wait_for
from tests.factories import make_user
from tests.room import (
    RoomServer,
    connections_named,
    cut_the_listeners,
    listening,
    make_desk,
    serving,
    session_of,
    today,
)

pytestmark = pytest.mark.django_db(transaction=True)
SITE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[RoomServer]:
    with django_db_blocker.unblock(), serving(tmp_path_factory.mktemp("room"), site_url=SITE) as server:
        yield server


def get(server: RoomServer, **options: object) -> requests.Response:
    return requests.get(f"{server.url}/sala/eventos/", stream=True, timeout=20, **options)  # type: ignore[arg-type]


def test_a_room_hears_of_its_own_doctors_and_of_no_others(server):
    mine, other = today(), today()
    with listening(server, make_desk(mine.doctor), make_desk(other.doctor)) as (room, others_room):
        heard, others_heard = len(room.events), len(others_room.events)
        booking.confirm(mine, actor=booking.SYSTEM)
        room.wait_for_more_than(heard)
        booking.confirm(other, actor=booking.SYSTEM)
        others_room.wait_for_more_than(others_heard)
        assert len(room.events) == heard + 1


def test_a_flood_is_one_event_a_second_and_the_last_change_is_never_lost(server):
    visit = today()
    with listening(server, make_desk(visit.doctor)) as [room]:
        began, heard = time.monotonic(), len(room.events)
        statuses = ["confirmed", "scheduled"] * 2
        while time.monotonic() - began < 3:
            for status in statuses:
                Appointment.objects.filter(pk=visit.pk).update(status=status)
        last = time.monotonic()
        wait_for(lambda: room.events[-1][0] > last)
        took = room.events[-1][0] - began
        assert 2 <= len(room.events) - heard <= took + 2
        moments = [at for at, _word in room.events[heard:]]
        assert all(after - before > 0.9 for before, after in pairwise(moments))


def test_after_the_database_cut_the_listener_off_the_rooms_are_told_and_live_again(server):
    visit = today()
    with listening(server, make_desk(visit.doctor)) as [room]:
        heard = len(room.events)
        cut_the_listeners()
        # What is changed meanwhile is notified to nobody: the event after it makes it good.
        booking.confirm(visit, actor=booking.SYSTEM)
        wait_for(lambda: "changed" in room.words[heard:])
        wait_for(lambda: len(connections_named(LISTENER)) == 1)
        heard = len(room.events)
        booking.check_in(visit, actor=booking.SYSTEM)
        room.wait_for_more_than(heard)
        assert room.words[-1] == "changed"


def test_fifty_rooms_need_one_connection_and_the_server_stops_within_seconds(tmp_path):
    visit, listeners = today(), len(connections_named(LISTENER))
    with serving(tmp_path) as server, listening(server, *[make_desk(visit.doctor)] * 50) as rooms:
        wait_for(lambda: connections_named(server.name) == [])
        heard = [len(room.events) for room in rooms]
        booking.confirm(visit, actor=booking.SYSTEM)
        wait_for(lambda: all(len(room.events) > count for room, count in zip(rooms, heard, strict=True)))
        assert len(connections_named(LISTENER)) == listeners + 1
        assert server.stop() < 6
        wait_for(lambda: all(room.is_over for room in rooms))


def test_the_stream_is_for_whoever_is_logged_in_and_acts_for_a_doctor(server):
    assert get(server).status_code == 403
    assert get(server, cookies={"sessionid": session_of(make_user())}).status_code == 403


def test_proxies_pass_it_on_at_once_and_only_our_own_site_may_read_it(server):
    cookies = {"sessionid": session_of(make_desk())}
    answer = get(server, cookies=cookies, headers={"Origin": SITE})
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["Access-Control-Allow-Origin"] == SITE
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    answer.close()
    answer = get(server, cookies=cookies, headers={"Origin": "http://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers
    answer.close()


def test_a_server_without_streams_refuses_it_at_once():
    client = Client()
    client.force_login(make_desk())
    assert client.get("/sala/eventos/").status_code == 503


def test_a_setting_that_cannot_work_does_not_serve():
    environment = {**os.environ, "REMINDER_CHANNELS": "pigeon"}
    command = [sys.executable, "-m", "uvicorn", "amedi.asgi:application", "--port", "0"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 3
    assert "pigeon" in ended.stderr


@pytest.mark.parametrize(
    ("stream_url", "warnings"),
    [("http://127.0.0.1:8003", 0), ("http://localhost:8003", 1), ("https://127.0.0.1", 1)],
)
def test_a_stream_at_another_host_would_get_no_login_and_is_warned_of(stream_url, warnings, settings):
    settings.SITE_URL, settings.ROOM_STREAM_URL = SITE, stream_url
    assert len(stream_is_of_the_same_host()) == warnings
