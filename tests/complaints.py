"""Writes docs/what-others-get-wrong.md from the tests that are marked as complaints.

``python -m tests.complaints`` writes it; with ``--check`` it only says whether it is up to date.

A test is marked with what users of other products complain of, in our words, and with where
they do: ``@pytest.mark.complaint("...", about="rules", source="owner/repo #12, PR#34; a help page")``.
A second test of the same complaint repeats its words only. Nothing runs: the marks are collected.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "what-others-get-wrong.md"
TOPICS = {
    "moves": "Visits that are moved or called off",
    "twice": "Twice, or not at all",
    "rules": "Rules and bookings",
    "clocks": "Clocks and outages",
    "nights": "Quiet hours",
    "words": "Words",
    "people": "People and their answers",
}
HEAD = """\
# What others get wrong

What users of other reminder systems complain of, in our words, and the test that shows that we do not
have it. Written by `python -m tests.complaints` from the marks of the tests: do not edit it by hand.
"""
_THREADS = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?P<threads>(?:,? (?:PR)?#\d+)+)")
_THREAD = re.compile(r"(PR)?#(\d+)")


class Undocumented(Exception):
    """A mark that does not say where the complaint was made, or what it is about."""


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """What goes wrong elsewhere, and what shows that it does not here."""

    text: str
    topic: str
    source: str
    tests: tuple[tuple[str, str], ...]
    """File and name of each."""

    def row(self) -> str:
        """Its line in the table."""
        shown = "; ".join(
            f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})" for file, name in self.tests
        )
        return f"| {self.text} | {linked(self.source)} | {shown} |"


def linked(source: str) -> str:
    """The source with each thread of a repository as a link; other words stay as they are."""

    def link(found: re.Match[str]) -> str:
        repository = found["repository"]
        links = [
            f"[{kind}#{number}](https://github.com/{repository}/{'pull' if kind else 'issues'}/{number})"
            for kind, number in _THREAD.findall(found["threads"])
        ]
        return f"{repository} {', '.join(links)}"

    return _THREADS.sub(link, source)


class Collector:
    """Keeps the marks of all tests that pytest finds."""

    def __init__(self) -> None:
        self.found: list[tuple[pytest.Mark, str, str]] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Note every mark once, however many parameters its test has."""
        for item in items:
            for mark in item.iter_markers("complaint"):
                noted = mark, item.path.relative_to(ROOT).as_posix(), item.originalname
                if noted not in self.found:
                    self.found.append(noted)


def complaints(found: Iterable[tuple[pytest.Mark, str, str]]) -> list[Complaint]:
    """One complaint for each text, with all its tests. Raises Undocumented."""
    by_text: dict[str, list[tuple[pytest.Mark, str, str]]] = defaultdict(list)
    for mark, file, name in found:
        by_text[mark.args[0]].append((mark, file, name))
    return [_complaint(text, its) for text, its in by_text.items()]


def _complaint(text: str, found: Sequence[tuple[pytest.Mark, str, str]]) -> Complaint:
    told = [mark.kwargs for mark, _, _ in found if mark.kwargs]
    if len(told) != 1 or not told[0].get("source") or told[0].get("about") not in TOPICS:
        names = ", ".join(name for _, _, name in found)
        raise Undocumented(f"«{text}» needs one source, and is about one of {', '.join(TOPICS)}: {names}")
    return Complaint(
        text=text,
        topic=told[0]["about"],
        source=told[0]["source"],
        tests=tuple((file, name) for _, file, name in found),
    )


def document(them: Iterable[Complaint]) -> str:
    """The whole page."""
    by_topic: dict[str, list[Complaint]] = defaultdict(list)
    for complaint in them:
        by_topic[complaint.topic].append(complaint)
    parts = [HEAD]
    for topic, title in TOPICS.items():
        if its := sorted(by_topic[topic], key=lambda complaint: complaint.text):
            rows = "\n".join(complaint.row() for complaint in its)
            parts.append(f"## {title}\n\n| what goes wrong | where | our test |\n|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def collected() -> list[Complaint]:
    """The complaints of all tests there are, in no order."""
    files = [
        str(path) for path in (ROOT / "tests").glob("test_*.py") if "mark.complaint(" in path.read_text()
    ]
    collector = Collector()
    options = ["--collect-only", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    os.chdir(ROOT)
    with redirect_stdout(StringIO()) as said:
        code = pytest.main([*options, *sorted(files)], plugins=[collector])
    if code:
        raise SystemExit(f"The tests cannot be collected:\n{said.getvalue()}")
    return complaints(collector.found)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or check it; the exit code."""
    page = document(collected())
    if "--check" not in arguments:
        DOCUMENT.write_text(page)
        return 0
    if DOCUMENT.exists() and DOCUMENT.read_text() == page:
        return 0
    sys.stderr.write(f"{DOCUMENT.name} is out of date: python -m tests.complaints writes it.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
