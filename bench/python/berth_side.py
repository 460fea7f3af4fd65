"""
One worker on a running Berth: `berth-worker`, or the public SDK as it is or with the acceleration hook.

Options: `url` and `key` of the server, `endpoint` (for `drain` with its jobs queued), `sdk` ("berth_worker"
or "runpod"), `accelerate`, `python` (the one that has the SDK), `channel`.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import handlers
from measuring import drain_rate, main, round_trips

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
import process_guard
from berth_server import SOURCES, BerthApi, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = """from __future__ import annotations
import {sdk} as runpod
{source}
runpod.serverless.start({{"handler": {name}}})
"""


@contextmanager
def worker(options: dict[str, Any], handler: Callable[..., Any]) -> Iterator[BerthApi]:
    berth = BerthApi(options["url"], options["key"])
    folder = Path(tempfile.mkdtemp(prefix="berth-bench-worker-"))
    process_guard.guard(folder)
    env = berth.worker_env(options["endpoint"], "bench")
    env["RUNPOD_PING_INTERVAL"] = "10000"
    env["RUNPOD_LOG_LEVEL"] = options.get("log_level", "INFO")
    env["BERTH_WORKER_CHANNEL"] = options.get("channel", "auto")
    own = options["sdk"] == "berth_worker"
    if options.get("accelerate"):
        env["PYTHONPATH"] = str(SOURCES / "berth_worker" / "accelerate" / "path")
    script = START.format(
        sdk=options["sdk"], source=inspect.getsource(handler), name=handler.__name__
    )
    process = WorkerProcess(
        script, env, folder, python=options.get("python", sys.executable), with_sources=own
    )
    try:
        yield berth
    finally:
        process.kill()
        process_guard.release(folder)


def drain(options: dict[str, Any]) -> dict[str, float]:
    with worker(options, handlers.noop) as berth:

        def done() -> int:
            answer = berth.request("GET", f"/v2/{options['endpoint']}/health")[1]
            return int(answer["jobs"]["completed"])

        return {"rate": drain_rate(done, options["jobs"], options["seconds"])}


def runsync(options: dict[str, Any]) -> dict[str, float]:
    with worker(options, handlers.noop) as berth:

        def call() -> None:
            path = f"/v2/{options['endpoint']}/runsync"
            answer = berth.request("POST", path, {"input": {"number": 1}})[1]
            assert answer["status"] == "COMPLETED", json.dumps(answer)

        return round_trips(call, options["calls"], options["warm"])


def stream(options: dict[str, Any]) -> dict[str, float]:
    """Every chunk is read by a client, and must come in order."""
    endpoint, count = options["endpoint"], options["chunks"]
    with worker(options, handlers.numbers) as berth:
        berth.stream(endpoint, berth.run(endpoint, {"count": 10}))
        begun = time.perf_counter()
        chunks = berth.stream(endpoint, berth.run(endpoint, {"count": count}), 300)
        seconds = time.perf_counter() - begun
    assert chunks == list(range(count)), f"{len(chunks)} chunks, not in order"
    return {"rate": count / seconds}


if __name__ == "__main__":
    main(drain=drain, runsync=runsync, stream=stream)
