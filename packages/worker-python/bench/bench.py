"""
One worker with a handler that does nothing, on a real Berth server: drain, warm runsync, stream chunks.

    python packages/worker-python/bench/bench.py [--jobs N] [--handler sync|async]
        [--channel auto|public] [--python PATH --sdk]

`--sdk` measures the public SDK that the given Python has, `--accelerate` the same with the acceleration hook.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "python"))
from berth_server import SOURCES, Berth, WorkerProcess  # noqa: E402

HANDLERS = {
    "sync": "def handler(job):\n    return {'ok': True}\n",
    "async": "async def handler(job):\n    return {'ok': True}\n",
}
STREAMS = {
    "sync": "def handler(job):\n    for number in range(job['input']['count']):\n        yield number\n",
    "async": (
        "async def handler(job):\n    for number in range(job['input']['count']):\n        yield number\n"
    ),
}
START = "import {package} as runpod\n{handler}\nrunpod.serverless.start({{'handler': handler}})\n"


def fill(berth: Berth, endpoint: str, jobs: int, clients: int = 8) -> None:
    body = json.dumps({"input": {"number": 1}})
    headers = {"Authorization": f"Bearer {berth.key}", "Content-Type": "application/json"}

    def client(count: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(berth.url).port)
        for _ in range(count):
            connection.request("POST", f"/v2/{endpoint}/run", body, headers)
            connection.getresponse().read()

    threads = [threading.Thread(target=client, args=(jobs // clients,)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def completed(berth: Berth, endpoint: str) -> int:
    return int(berth.request("GET", f"/v2/{endpoint}/health")[1]["jobs"]["completed"])


class Bench:
    def __init__(self, berth: Berth, options: argparse.Namespace) -> None:
        self.berth = berth
        self.options = options
        self.count = 0

    def worker(self, endpoint: str, handlers: dict[str, str]) -> WorkerProcess:
        self.count += 1
        env = self.berth.worker_env(endpoint, f"bench-{self.count}")
        env["RUNPOD_PING_INTERVAL"] = "10000"
        env["RUNPOD_LOG_LEVEL"] = self.options.log_level
        env["BERTH_WORKER_CHANNEL"] = self.options.channel
        if self.options.accelerate:
            env["PYTHONPATH"] = str(SOURCES / "berth_worker" / "accelerate" / "path")
        script = START.format(
            package="runpod" if self.options.sdk or self.options.accelerate else "berth_worker",
            handler=handlers[self.options.handler],
        )
        own = not (self.options.sdk or self.options.accelerate)
        return WorkerProcess(script, env, self.berth.folder, python=self.options.python, with_sources=own)

    def drain(self) -> float:
        endpoint = self.berth.create_endpoint(f"drain-{self.count}")
        fill(self.berth, endpoint, self.options.jobs)
        worker = self.worker(endpoint, HANDLERS)
        try:
            first, first_at = 0, 0.0
            deadline = time.monotonic() + self.options.seconds
            while True:
                done, now = completed(self.berth, endpoint), time.monotonic()
                if done and not first:
                    first, first_at = done, now
                if done >= self.options.jobs // 8 * 8 or now > deadline:
                    break
                time.sleep(0.01)
            return (done - first) / (now - first_at) if now > first_at else 0.0
        finally:
            worker.stop(120)

    def runsync(self) -> tuple[float, float]:
        endpoint = self.berth.create_endpoint(f"runsync-{self.count}")
        worker = self.worker(endpoint, HANDLERS)
        try:
            times = []
            for number in range(self.options.calls + 20):
                begun = time.perf_counter()
                status, answer = self.berth.request(
                    "POST", f"/v2/{endpoint}/runsync", {"input": {"number": number}}
                )
                assert answer["status"] == "COMPLETED", answer
                if number >= 20:
                    times.append((time.perf_counter() - begun) * 1000)
            return statistics.median(times), sorted(times)[int(len(times) * 0.99)]
        finally:
            worker.stop(120)

    def stream(self) -> float:
        endpoint = self.berth.create_endpoint(f"stream-{self.count}")
        worker = self.worker(endpoint, STREAMS)
        try:
            warm = self.berth.run(endpoint, {"count": 10})
            self.berth.wait(endpoint, warm)
            begun = time.perf_counter()
            job = self.berth.run(endpoint, {"count": self.options.chunks})
            chunks: list[Any] = self.berth.stream(endpoint, job, 300)
            seconds = time.perf_counter() - begun
            assert chunks == list(range(self.options.chunks)), f"{len(chunks)} chunks, not in order"
            return float(self.options.chunks / seconds)
        finally:
            worker.stop(120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--handler", choices=list(HANDLERS), default="sync")
    parser.add_argument("--channel", choices=("auto", "public", "fast"), default="auto")
    parser.add_argument("--log-level", default="INFO")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sdk", action="store_true")
    parser.add_argument("--accelerate", action="store_true")
    parser.add_argument("--only", choices=("drain", "runsync", "stream"))
    options = parser.parse_args()
    berth = Berth()
    try:
        bench = Bench(berth, options)
        if options.only in (None, "drain"):
            print(f"drain    {bench.drain():8.0f} jobs/s")
        if options.only in (None, "runsync"):
            middle, late = bench.runsync()
            print(f"runsync  {middle:8.2f} ms p50, {late:.2f} ms p99")
        if options.only in (None, "stream"):
            print(f"stream   {bench.stream():8.0f} chunks/s in order")
    finally:
        berth.stop()


if __name__ == "__main__":
    main()
