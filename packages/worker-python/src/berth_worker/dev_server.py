"""The local HTTP server of `--rp_serve_api`: the job API around one handler, for trying it."""

from __future__ import annotations

import json
import os
import threading
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .local_run import LocalRun, run_once
from .log import RunPodLogger

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import Job
    from .result import ResultFormat

NOT_FOUND = "Job ID not found"
NO_STREAM = "Stream not supported, handler must be a generator."
WEBHOOK_SECONDS = 10


class JobApi:
    """What each URL answers: a status and a JSON value."""

    def __init__(self, handler: Callable[[Any], Any], format: ResultFormat, concurrency: int) -> None:
        self._handler = handler
        self._format = format
        self._places = threading.BoundedSemaphore(max(1, concurrency))
        self._stored: dict[str, Job] = {}

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        parts = path.partition("?")[0].strip("/").split("/")
        endpoint = os.environ.get("RUNPOD_ENDPOINT_ID")
        if parts in (["run"], ["runsync"]):
            if not isinstance(body, dict) or not isinstance(body.get("input"), dict):
                return 422, {
                    "detail": [
                        {"loc": ["body", "input"], "msg": "input has to be an object", "type": "value_error"}
                    ]
                }
            job = {"id": f"test-{uuid.uuid4()}", "input": body["input"], "webhook": body.get("webhook")}
            if parts == ["runsync"]:
                return 200, self._status(job, self._run(job))
            self._stored[job["id"]] = job
            return 200, {"id": job["id"], "status": "IN_PROGRESS"}
        if len(parts) == 2 and parts[0] in ("status", "stream"):
            stored = self._stored.pop(parts[1], None)
            if stored is None:
                return 200, {"id": parts[1], "status": "FAILED", "error": NOT_FOUND}
            run = self._run(stored)
            return 200, self._status(stored, run) if parts[0] == "status" else self._stream(stored, run)
        if endpoint and parts == [endpoint, "realtime"] and isinstance(body, dict) and "id" in body:
            return 200, self._run(body).result
        return 404, {"detail": "Not Found"}

    def _run(self, job: Job) -> LocalRun:
        with self._places:
            return run_once(self._handler, {"id": job["id"], "input": job.get("input")}, self._format)

    def _status(self, job: Job, run: LocalRun) -> dict[str, Any]:
        if run.result.get("error"):
            return {"id": job["id"], "status": "FAILED", "error": run.result["error"]}
        output = run.chunks if run.streamed else run.result.get("output")
        _call_webhook(job.get("webhook"), {"output": output})
        return {"id": job["id"], "status": "COMPLETED", "output": output}

    def _stream(self, job: Job, run: LocalRun) -> dict[str, Any]:
        if not run.streamed:
            return {"id": job["id"], "status": "FAILED", "error": NO_STREAM}
        if run.result.get("error"):
            return {"id": job["id"], "status": "FAILED", "error": run.result["error"]}
        stream = [{"output": chunk} for chunk in run.chunks]
        _call_webhook(job.get("webhook"), stream)
        return {"id": job["id"], "status": "COMPLETED", "stream": stream}


def _call_webhook(url: str | None, value: Any) -> None:
    if not url:
        return

    def call() -> None:
        request = urllib.request.Request(
            url, json.dumps(value).encode(), {"Content-Type": "application/json"}
        )
        try:
            urllib.request.urlopen(request, timeout=WEBHOOK_SECONDS).close()
        except (OSError, ValueError) as error:
            RunPodLogger().warn(f"The webhook {url} was not reached: {error}")

    threading.Thread(target=call, daemon=True).start()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: JobApi

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            body = json.loads(text) if text.strip() else None
        except ValueError as error:
            self._send(422, {"detail": f"the body is not JSON: {error}"})
            return
        self._send(*self.api.answer(self.path, body))

    def do_GET(self) -> None:
        if self.path.startswith(("/status/", "/stream/")):
            self._send(*self.api.answer(self.path, None))
        else:
            self._send(200, {"message": "POST /run, /runsync, /status/{id} or /stream/{id}"})

    def _send(self, status: int, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def create_dev_server(
    handler: Callable[[Any], Any], format: ResultFormat, *, host: str, port: int, concurrency: int = 1
) -> ThreadingHTTPServer:
    requests = type("Requests", (_Requests,), {"api": JobApi(handler, format, concurrency)})
    return ThreadingHTTPServer((host, port), requests)


def serve_api(
    handler: Callable[[Any], Any], format: ResultFormat, *, host: str, port: int, concurrency: int = 1
) -> None:
    """Serves until it is interrupted."""
    server = create_dev_server(handler, format, host=host, port=port, concurrency=concurrency)
    RunPodLogger().info(f"The handler is served at http://{host}:{server.server_address[1]}")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
