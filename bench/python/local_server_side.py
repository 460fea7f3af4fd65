"""
The local server of the public SDK (`--rp_serve_api`). It has no queue: a job runs when it is asked for, so
`drain` is one `runsync` after the other.
"""

from __future__ import annotations

import http.client
import inspect
import json
import socket
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import handlers
from measuring import START_SECONDS, Program, main, round_trips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = """from __future__ import annotations
import runpod
{source}
runpod.serverless.start({{"handler": {name}}})
"""


@contextmanager
def local_server(handler: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """What posts to it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "handler.py"
        script.write_text(START.format(source=inspect.getsource(handler), name=handler.__name__))
        flags = ("--rp_serve_api", "--rp_api_host", "127.0.0.1", "--rp_api_port", str(port))
        with Program(str(script), *flags, cwd=folder):
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

            def post(path: str, body: Any = None) -> Any:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                return json.loads(connection.getresponse().read())

            yield post
            connection.close()


def drain(options: dict[str, Any]) -> dict[str, float]:
    with local_server(handlers.noop) as post:
        post("/runsync", {"input": {"number": 1}})
        begun, count = time.monotonic(), 0
        while (spent := time.monotonic() - begun) < options["seconds"]:
            assert post("/runsync", {"input": {"number": 1}})["status"] == "COMPLETED"
            count += 1
        return {"rate": count / spent}


def runsync(options: dict[str, Any]) -> dict[str, float]:
    with local_server(handlers.noop) as post:
        return round_trips(
            lambda: post("/runsync", {"input": {"number": 1}}), options["calls"], options["warm"]
        )


def stream(options: dict[str, Any]) -> dict[str, float]:
    """It answers with all chunks at once, when the handler has ended."""
    with local_server(handlers.numbers) as post:
        begun = time.perf_counter()
        job = post("/run", {"input": {"count": options["chunks"]}})["id"]
        chunks = [chunk["output"] for chunk in post(f"/stream/{job}")["stream"]]
        seconds = time.perf_counter() - begun
    assert chunks == list(range(options["chunks"])), f"{len(chunks)} chunks, not in order"
    return {"rate": options["chunks"] / seconds}


if __name__ == "__main__":
    main(drain=drain, runsync=runsync, stream=stream)
