"""Celery on Redis, with results: the module of its tasks, and the program that measures it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Celery
from measuring import Program, drain_rate, main, round_trips
from redis import Redis

URL = os.environ["BENCH_REDIS"]
app = Celery("celery_side", broker=f"{URL}/0", backend=f"{URL}/1")


@app.task(name="noop")
def noop(input: dict[str, Any]) -> dict[str, bool]:
    return {"ok": True}


def worker(pool: str) -> Program:
    """The pool is `prefork`, the default, with one child, or `solo`: tasks run in the worker itself."""
    flags = f"--pool {pool} --concurrency 1 --loglevel ERROR --without-gossip --without-mingle".split()
    folder = str(Path(__file__).parent)
    return Program("-m", "celery", "-A", "celery_side", "worker", *flags, cwd=folder)


def drain(options: dict[str, Any]) -> dict[str, float]:
    for _ in range(options["jobs"]):
        noop.delay({"number": 1})
    results = Redis.from_url(f"{URL}/1")
    with worker(options["pool"]):
        return {"rate": drain_rate(results.dbsize, options["jobs"], options["seconds"])}


def runsync(options: dict[str, Any]) -> dict[str, float]:
    with worker(options["pool"]):
        return round_trips(
            lambda: noop.delay({"number": 1}).get(timeout=60), options["calls"], options["warm"]
        )


if __name__ == "__main__":
    main(drain=drain, runsync=runsync)
