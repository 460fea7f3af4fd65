"""RQ on Redis: the module of its tasks, and the program that measures it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from measuring import Program, drain_rate, main, round_trips
from redis import Redis
from rq import Queue

URL = os.environ["BENCH_REDIS"]
NAME = "bench"


def noop(input: dict[str, Any]) -> dict[str, bool]:
    return {"ok": True}


def worker() -> Program:
    """`SimpleWorker` does not fork for each job, which the default does."""
    flags = ("--url", f"{URL}/0", "--worker-class", "rq.worker.SimpleWorker", "--quiet")
    return Program("-m", "rq.cli", "worker", *flags, NAME, cwd=str(Path(__file__).parent))


def drain(options: dict[str, Any]) -> dict[str, float]:
    redis = Redis.from_url(f"{URL}/0")
    queue = Queue(NAME, connection=redis)
    queue.enqueue_many(
        [queue.prepare_data("rq_side.noop", args=({"number": 1},)) for _ in range(options["jobs"])]
    )
    with worker():
        return {
            "rate": drain_rate(
                lambda: int(redis.zcard(f"rq:finished:{NAME}")), options["jobs"], options["seconds"]
            )
        }


def runsync(options: dict[str, Any]) -> dict[str, float]:
    queue = Queue(NAME, connection=Redis.from_url(f"{URL}/0"))

    def call() -> None:
        result = queue.enqueue("rq_side.noop", {"number": 1}).latest_result(timeout=60)
        assert result is not None and result.return_value == {"ok": True}

    with worker():
        return round_trips(call, options["calls"], options["warm"])


if __name__ == "__main__":
    main(drain=drain, runsync=runsync)
