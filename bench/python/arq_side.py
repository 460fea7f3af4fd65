"""arq on Redis: its worker, and the program that measures it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from measuring import Program, drain_rate, main, round_trips
from redis import Redis

URL = os.environ["BENCH_REDIS"]
QUEUE = "arq:queue"
#: How often the worker and the client look. The default of both is half a second.
POLL_SECONDS = 0.002


async def noop(context: dict[str, Any], input: dict[str, Any]) -> dict[str, bool]:
    return {"ok": True}


class WorkerSettings:
    functions = [noop]
    redis_settings = RedisSettings.from_dsn(f"{URL}/0")
    poll_delay = POLL_SECONDS


def worker() -> Program:
    folder = str(Path(__file__).parent)
    return Program(str(Path(sys.executable).with_name("arq")), "arq_side.WorkerSettings", cwd=folder)


def drain(options: dict[str, Any]) -> dict[str, float]:
    jobs = options["jobs"]

    async def fill() -> None:
        pool = await create_pool(RedisSettings.from_dsn(f"{URL}/0"))
        for _ in range(jobs):
            await pool.enqueue_job("noop", {"number": 1})
        await pool.aclose()

    asyncio.run(fill())
    redis = Redis.from_url(f"{URL}/0")
    with worker():
        return {"rate": drain_rate(lambda: jobs - int(redis.zcard(QUEUE)), jobs, options["seconds"])}


def runsync(options: dict[str, Any]) -> dict[str, float]:
    loop = asyncio.new_event_loop()
    pool = loop.run_until_complete(create_pool(RedisSettings.from_dsn(f"{URL}/0")))

    async def call() -> None:
        job = await pool.enqueue_job("noop", {"number": 1})
        assert job is not None
        await job.result(timeout=60, poll_delay=POLL_SECONDS)

    with worker():
        times = round_trips(lambda: loop.run_until_complete(call()), options["calls"], options["warm"])
    loop.run_until_complete(pool.aclose())
    loop.run_until_complete(loop.shutdown_asyncgens())
    return times


if __name__ == "__main__":
    main(drain=drain, runsync=runsync)
