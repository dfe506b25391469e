"""The page of what others get wrong is what the tests say."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.complaints import ROOT, Undocumented, complaints, document, linked


def mark(text: str, **said: Any) -> pytest.Mark:
    return pytest.mark.complaint(text, **said).mark


def test_the_page_is_up_to_date():
    # On the server that runs already.
    environment = os.environ | {"TEST_DATABASE_URL": os.environ["DATABASE_URL"]}
    checked = subprocess.run(
        [sys.executable, "-m", "tests.complaints", "--check"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_thread_is_a_link_and_other_words_stay_words():
    assert linked("a/b #1, PR#2; c.d/e-f #3; a help page") == (
        "a/b [#1](https://github.com/a/b/issues/1), [PR#2](https://github.com/a/b/pull/2); "
        "c.d/e-f [#3](https://github.com/c.d/e-f/issues/3); a help page"
    )


def test_a_complaint_has_one_line_with_all_its_tests():
    found = [
        (mark("It is late.", about="clocks", source="a/b #1"), "tests/test_x.py", "test_it_is_not"),
        (mark("It is late."), "tests/test_y.py", "test_nor_here"),
    ]
    [row] = [line for line in document(complaints(found)).splitlines() if line.startswith("| It")]
    assert row.endswith("| [it is not](../tests/test_x.py); [nor here](../tests/test_y.py) |")


@pytest.mark.parametrize(
    "said", [{}, {"about": "clocks"}, {"source": "a/b #1"}, {"about": "x", "source": "a/b #1"}]
)
def test_a_complaint_that_does_not_say_where_it_was_made_is_refused(said):
    with pytest.raises(Undocumented):
        complaints([(mark("It is late.", **said), "tests/test_x.py", "test_it_is_not")])
