"""The handler, called directly in a loop: the limit of everything else."""

from __future__ import annotations

import time
from typing import Any

from handlers import noop, numbers
from measuring import main, round_trips


def drain(options: dict[str, Any]) -> dict[str, float]:
    job = {"id": "1", "input": {"number": 1}}
    begun = time.perf_counter()
    for _ in range(options["jobs"]):
        noop(job)
    return {"rate": options["jobs"] / (time.perf_counter() - begun)}


def runsync(options: dict[str, Any]) -> dict[str, float]:
    return round_trips(lambda: noop({"id": "1", "input": {}}), options["calls"], options["warm"])


def stream(options: dict[str, Any]) -> dict[str, float]:
    begun = time.perf_counter()
    chunks = list(numbers({"id": "1", "input": {"count": options["chunks"]}}))
    return {"rate": len(chunks) / (time.perf_counter() - begun)}


if __name__ == "__main__":
    main(drain=drain, runsync=runsync, stream=stream)
