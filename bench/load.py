"""Posts at fixed moments, however long the answers take: no server can slow the asking down.

    python -m bench.load FILE URL UNIX_TIME

Each line of the file is a post in JSON: its moment in seconds from the begin,
its body and its signature. Prints, in JSON, for each post the seconds from its
moment to its whole answer, or null when there was no 200.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

LONGEST = 30.0
"""Seconds after which an answer is given up."""


async def post(session: aiohttp.ClientSession, url: str, item: dict[str, Any], begin: float) -> float | None:
    """Send one post at its moment; the seconds from then to the answer."""
    moment = begin + item["at"]
    await asyncio.sleep(max(0.0, moment - time.time()))
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": item["signature"]}
    try:
        async with session.post(url, data=item["body"].encode(), headers=headers) as answer:
            await answer.read()
            return time.time() - moment if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError):
        return None


async def run(items: list[dict[str, Any]], url: str, begin: float) -> list[float | None]:
    """All posts, each at its moment."""
    timeout = aiohttp.ClientTimeout(total=LONGEST)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        return list(await asyncio.gather(*(post(session, url, item, begin) for item in items)))


if __name__ == "__main__":
    posts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    print(json.dumps(asyncio.run(run(posts, sys.argv[2], float(sys.argv[3])))), flush=True)
