"""Pings from a second process while a handler blocks the whole interpreter."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from .log import RunPodLogger

#: The process gets the list of jobs at most this often.
FRESH_SECONDS = 0.05
PROCESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ping_process_main.py")


class PingProcess:
    """
    Native code that keeps the interpreter lock stops every thread, and the server takes a silent worker for
    dead. A small process hears from this one several times per ping interval, and pings in its place when it
    hears nothing. Its lists are marked as partial: they may be older than the last change.
    """

    def __init__(
        self, *, url: Callable[[], str | None], api_key: str, ping_seconds: float, log: RunPodLogger
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._ping_seconds = ping_seconds
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: IO[bytes] | None = None
        self._write_lock = threading.Lock()
        self._sent_at = 0.0
        self._changed = threading.Event()
        self._stopped = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._run, name="berth-ping-process", daemon=True).start()

    def changed(self) -> None:
        """
        The worker holds other jobs. Sent at once where possible: the job that has just come may block the
        interpreter.
        """
        if time.monotonic() - self._sent_at >= FRESH_SECONDS:
            self._send_url()
        else:
            self._changed.set()

    def stop(self) -> None:
        self._stopped.set()
        self._changed.set()
        with self._write_lock:
            pipe, self._pipe = self._pipe, None
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                pass
        if self._process is not None:
            try:
                self._process.wait(2)
            except Exception:
                self._process.kill()

    def _run(self) -> None:
        if not self._start():
            return
        self._send_url()
        while not self._stopped.is_set():
            if self._changed.wait(self._ping_seconds / 4):
                self._changed.clear()
                self._stopped.wait(FRESH_SECONDS)
                self._send_url()
            else:
                self._write(b"\n")

    def _start(self) -> bool:
        import subprocess

        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROCESS],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            self._log.warn(f"No pings are sent while a handler blocks the interpreter: {error}")
            return False
        assert process.stdin is not None
        settings = {"apiKey": self._api_key, "seconds": self._ping_seconds, "parent": os.getpid()}
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        os.set_blocking(process.stdin.fileno(), False)
        with self._write_lock:
            self._process = process
            self._pipe = process.stdin
        return True

    def _send_url(self) -> None:
        if self._pipe is None:
            return
        self._sent_at = time.monotonic()
        url = self._url()
        if url is not None:
            self._write(url.encode("utf-8", "replace") + b"\n")

    def _write(self, data: bytes) -> None:
        """
        A pipe that is full means that the process does not read: so nothing is sent. A list is longer than a
        pipe takes at once only in part, which the next line ends.
        """
        with self._write_lock:
            if self._pipe is None:
                return
            try:
                self._pipe.write(data)
            except OSError:
                self._pipe = None
