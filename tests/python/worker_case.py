"""A test case with one server for all of its tests, and workers that end with the test."""

from __future__ import annotations

import ssl
import sys
import unittest
from typing import Any
from urllib.parse import urlsplit

from berth_server import Berth, WorkerProcess
from cutting_proxy import CuttingProxy

PREAMBLE = "import asyncio, os, sys, time\nimport berth_worker as runpod\n"


class WorkerCase(unittest.TestCase):
    #: How the workers of this case reach the server: "fast" or "public".
    channel = "fast"
    berth: Berth
    _names = 0

    @classmethod
    def setUpClass(cls) -> None:
        cls.berth = Berth()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.berth.stop()

    def endpoint(self, **more: Any) -> str:
        WorkerCase._names += 1
        return self.berth.create_endpoint(f"test-{WorkerCase._names}", **more)

    def worker(
        self,
        endpoint: str,
        handler: str,
        config: str = "",
        base: str | None = None,
        env: dict[str, str] | None = None,
        python: str = sys.executable,
    ) -> WorkerProcess:
        """A worker whose file defines `handler`. It is killed at the end of the test."""
        WorkerCase._names += 1
        variables = {
            **self.berth.worker_env(endpoint, f"worker-{WorkerCase._names}", base),
            "BERTH_WORKER_CHANNEL": self.channel,
            **(env or {}),
        }
        script = f"{PREAMBLE}{handler}\nrunpod.serverless.start({{'handler': handler, {config}}})\n"
        worker = WorkerProcess(script, variables, self.berth.folder, python=python)
        self.addCleanup(end, worker)
        return worker

    def proxy(self, hide_channel: bool = False, tls: ssl.SSLContext | None = None) -> CuttingProxy:
        proxy = CuttingProxy(urlsplit(self.berth.url).port or 0, hide_channel, tls)
        self.addCleanup(proxy.close)
        return proxy

    def result(self, endpoint: str, input: Any, seconds: float = 30) -> dict[str, Any]:
        return self.berth.wait(endpoint, self.berth.run(endpoint, input), seconds)


def end(worker: WorkerProcess) -> None:
    worker.kill()
