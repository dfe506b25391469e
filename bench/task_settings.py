"""The product's settings, with a cluster of django-q2 made for many short tasks."""

import os

from amedi.settings import *  # noqa: F403
from amedi.settings import Q_CLUSTER

Q_CLUSTER = {
    **Q_CLUSTER,
    "name": "bench",
    "workers": int(os.environ["BENCH_WORKERS"]),
    "recycle": 10_000,
    "poll": 0.2,
    "bulk": 100,
    "queue_limit": 400,
    # No rows of results: what became of a delivery stands in its own row.
    "save_limit": -1,
}
