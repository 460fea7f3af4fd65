"""Starts a real Berth server and talks to its job API, for tests and benchmarks of Python workers."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import process_guard

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "packages" / "worker-python" / "src"
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")


class BerthApi:
    """The job API of a server, for one thread."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self._connection: http.client.HTTPConnection | None = None

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def request(self, method: str, path: str, body: Any = None, timeout: float = 100) -> tuple[int, Any]:
        for attempt in (0, 1):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(
                    "127.0.0.1", urlsplit(self.url).port, timeout=timeout
                )
            try:
                headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
                self._connection.request(method, path, None if body is None else json.dumps(body), headers)
                response = self._connection.getresponse()
                text = response.read()
                return response.status, json.loads(text) if text else None
            except (http.client.HTTPException, OSError):
                self.disconnect()
                if attempt:
                    raise
        raise AssertionError

    def create_endpoint(self, name: str, **more: Any) -> str:
        """A queue endpoint without workers of its own: the test brings them."""
        body = {
            "name": name,
            "type": "QUEUE",
            "image": "local/shell",
            "cpu": [{"id": "cpu3c", "vcpuCount": 2}],
            "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
            "workers": {"min": 0, "max": 0},
            **more,
        }
        status, answer = self.request("POST", "/v2/serverless", body)
        assert status in (200, 201), answer
        return str(answer["id"])

    def run(self, endpoint: str, input: Any, **more: Any) -> str:
        status, answer = self.request("POST", f"/v2/{endpoint}/run", {"input": input, **more})
        assert status == 200, answer
        return str(answer["id"])

    def status(self, endpoint: str, job: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.request("GET", f"/v2/{endpoint}/status/{job}")[1]
        return answer

    def wait(
        self, endpoint: str, job: str, seconds: float = 30, until: tuple[str, ...] = FINAL
    ) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            answer = self.status(endpoint, job)
            if answer.get("status") in until:
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"the job is not {until} after {seconds} s: {answer}")
            time.sleep(0.02)

    def stream(self, endpoint: str, job: str, seconds: float = 60) -> list[Any]:
        """Every chunk until the job ends."""
        chunks: list[Any] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = self.request("GET", f"/v2/{endpoint}/stream/{job}")[1]
            chunks += [item["output"] for item in answer["stream"]]
            if answer["status"] in FINAL and not answer["stream"]:
                return chunks
        raise AssertionError("the stream does not end")

    def worker_env(self, endpoint: str, worker: str, base: str | None = None) -> dict[str, str]:
        at = f"{base or self.url}/v2/{endpoint}"
        return {
            "RUNPOD_ENDPOINT_ID": endpoint,
            "RUNPOD_POD_ID": worker,
            "RUNPOD_AI_API_KEY": self.key,
            "RUNPOD_PING_INTERVAL": "4000",
            "RUNPOD_WEBHOOK_GET_JOB": f"{at}/job-take/$ID?gpu=none",
            "RUNPOD_WEBHOOK_POST_OUTPUT": f"{at}/job-done/$RUNPOD_POD_ID/$ID?gpu=none",
            "RUNPOD_WEBHOOK_POST_STREAM": f"{at}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none",
            "RUNPOD_WEBHOOK_PING": f"{at}/ping/$RUNPOD_POD_ID?gpu=none",
            "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "true",
            "RUNPOD_SKIP_GPU_CHECK": "true",
        }


class Berth(BerthApi):
    """A server in a folder of its own. It can be killed and started again on the same data and port."""

    def __init__(self, env: dict[str, str] | None = None) -> None:
        super().__init__("", "")
        self.folder = Path(tempfile.mkdtemp(prefix="berth-python-"))
        process_guard.guard(self.folder)
        self._env = env or {}
        self._port = 0
        self.start()

    def start(self) -> None:
        env = {
            **os.environ,
            "BERTH_RATE_LIMITS": "off",
            "BERTH_LOG_LEVEL": "warn",
            "BERTH_WEBHOOKS_ALLOW_PRIVATE": "true",
            **self._env,
        }
        command = [
            "sh",
            str(REPOSITORY / "packages/cloud/bin/berth"),
            "up",
            "--port",
            str(self._port),
            "--data",
            str(self.folder / "data"),
        ]
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder
        )
        assert self.process.stdout is not None
        output = ""
        for line in self.process.stdout:
            output += line
            found = re.search(r"berth is up at (\S+)", line)
            if found:
                break
        else:
            raise RuntimeError(f"the server did not start: {output}")
        self.url = found.group(1)
        self._port = urlsplit(self.url).port or 0
        self.key = (self.folder / "data" / "root.key").read_text().strip()
        # The log is read to its end, so that the server never waits for this process.
        threading.Thread(target=_read_all, args=(self.process.stdout,), daemon=True).start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.disconnect()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        self.disconnect()
        # Workers that it started outlive a server.
        process_guard.release(self.folder)


def _read_all(output: IO[str]) -> None:
    with output:
        output.read()


class WorkerProcess:
    """A Python worker in a process of its own. Its output is kept in a file."""

    def __init__(
        self,
        script: str | Path,
        env: dict[str, str],
        folder: Path,
        python: str = sys.executable,
        args: tuple[str, ...] = (),
        with_sources: bool = True,
    ) -> None:
        path = folder / f"handler-{time.monotonic_ns()}.py"
        if isinstance(script, Path):
            path = script
        else:
            path.write_text(script)
        self.log_file = folder / f"worker-{time.monotonic_ns()}.log"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RUNPOD_")}
        if with_sources:
            clean["PYTHONPATH"] = str(SOURCES)
        # A folder of its own: some versions of the public SDK keep their state in the working directory.
        cwd = Path(tempfile.mkdtemp(dir=folder))
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [python, str(path), *args],
                env={**clean, **env},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def wait_log(self, text: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log:
            if time.monotonic() > deadline or (self.process.poll() is not None and text not in self.log):
                raise AssertionError(f"{text!r} is not in the log: {self.log[-3000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Ends the worker and its helpers: the public SDK pings from a process of its own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def stop(self, seconds: float = 15) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"the worker did not stop: {self.log[-3000:]}") from None
        return self.process.returncode
