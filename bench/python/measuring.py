"""What every side is measured with. A side is a program: `SIDE.py drain|runsync|stream OPTIONS`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

#: The worker has to start before its first job.
START_SECONDS = 60
POLL_SECONDS = 0.01


def main(**measures: Callable[[dict[str, Any]], dict[str, float]]) -> None:
    """Prints what was measured as one line of JSON."""
    measure, options = sys.argv[1:]
    print(json.dumps(measures[measure](json.loads(options))))


def drain_rate(done: Callable[[], int], jobs: int, seconds: float) -> float:
    """Jobs a second, from the first that has ended until all have, or for so long."""
    deadline = time.monotonic() + START_SECONDS
    while not (first := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no job has ended within {START_SECONDS} s")
        time.sleep(POLL_SECONDS)
    begun = time.monotonic()
    while True:
        time.sleep(POLL_SECONDS)
        count, now = done(), time.monotonic()
        if count >= jobs or now - begun >= seconds:
            return (count - first) / (now - begun)


def round_trips(call: Callable[[], Any], calls: int, warm: int) -> dict[str, float]:
    """Milliseconds of calls one after the other, after some that do not count."""
    for _ in range(warm):
        call()
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    return {"p50": times[len(times) // 2], "p99": times[math.ceil(len(times) * 0.99) - 1]}


class Program:
    """A worker of a peer. It ends with the measurement."""

    def __init__(self, *command: str, cwd: str | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
