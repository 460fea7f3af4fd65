"""Log lines on standard output: JSON on a platform, text on a terminal."""

from __future__ import annotations

import contextvars
import json
import os
import sys
import threading
from queue import SimpleQueue
from typing import Any

LOG_LEVELS = ["NOTSET", "TRACE", "DEBUG", "INFO", "WARN", "ERROR"]
DEFAULT_LEVEL = "DEBUG"
#: The platform shows messages of this length; a longer one loses its middle.
MAX_MESSAGE_LENGTH = 4096

#: The batch of the running job, which stands before its messages.
batch_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("berth_batch_id", default=None)

_queue: SimpleQueue[str] = SimpleQueue()
_writer: threading.Thread | None = None
_service_threads = threading.local()


def use_background_log() -> None:
    """
    Lines of the calling thread are written by another one from now on. A thread that talks to the server must
    not wait for standard output, which is full while a handler prints faster than anyone reads.
    """
    global _writer
    _service_threads.background = True
    if _writer is None:
        _writer = threading.Thread(target=_write_queued, name="berth-log", daemon=True)
        _writer.start()


def _write_queued() -> None:
    while True:
        _write(_queue.get())


def flush_background_log(seconds: float = 1.0) -> None:
    """Waits for a short time until queued lines are written."""
    if _writer is None:
        return
    for _ in range(int(seconds / 0.01)):
        if _queue.empty():
            return
        threading.Event().wait(0.01)


def _write(line: str) -> None:
    try:
        sys.stdout.write(line)
        sys.stdout.flush()
    except UnicodeEncodeError:
        _write(line.encode("ascii", "backslashreplace").decode())
    except Exception:
        pass  # Standard output is closed, or not a file: there is nobody to tell.


def level_name(level: str | int) -> str:
    """The name of a level that is given by name or by number. Raises ValueError for any other."""
    if isinstance(level, str) and level.upper() in LOG_LEVELS:
        return level.upper()
    if isinstance(level, int) and 0 <= level < len(LOG_LEVELS):
        return LOG_LEVELS[level]
    raise ValueError(f"Invalid debug level: {level}; it is one of {', '.join(LOG_LEVELS)}")


def _level_of_environment() -> str:
    try:
        return level_name(
            os.environ.get("RUNPOD_LOG_LEVEL") or os.environ.get("RUNPOD_DEBUG_LEVEL") or DEFAULT_LEVEL
        )
    except ValueError:
        return DEFAULT_LEVEL


class RunPodLogger:
    """The logger of workers. There is one for the whole process."""

    _instance: RunPodLogger | None = None
    level: str = _level_of_environment()

    def __new__(cls) -> RunPodLogger:
        if RunPodLogger._instance is None:
            RunPodLogger._instance = object.__new__(cls)
        return RunPodLogger._instance

    def set_level(self, new_level: str | int) -> None:
        self.level = level_name(new_level)
        self.info(f"Log level set to {self.level}")

    def shows(self, level: str) -> bool:
        if self.level == "NOTSET":
            return False
        return level == "TIP" or LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.level)

    def log(self, message: Any, message_level: str = "INFO", job_id: str | None = None) -> None:
        if not self.shows(message_level):
            return
        text = str(message)
        batch = batch_id.get()
        if batch:
            text = f"[batchId={batch}] {text}"
        if len(text) > MAX_MESSAGE_LENGTH:
            half = MAX_MESSAGE_LENGTH // 2
            text = (
                f"{text[:half]}\n...TRUNCATED {len(text) - MAX_MESSAGE_LENGTH} CHARACTERS...\n{text[-half:]}"
            )
        if os.environ.get("RUNPOD_ENDPOINT_ID"):
            line = json.dumps({"requestId": job_id, "message": text, "level": message_level}) + "\n"
        else:
            line = f"{message_level.ljust(7)}| {f'{job_id} | ' if job_id else ''}{text}\n"
        if getattr(_service_threads, "background", False):
            _queue.put(line)
        else:
            _write(line)

    def secret(self, secret_name: str, secret: Any) -> None:
        """Shows the first and the last character of a secret only."""
        text = str(secret)
        shown = text[0] + "*" * (len(text) - 2) + text[-1] if len(text) > 2 else "*" * len(text)
        self.info(f"{secret_name}: {shown}")

    def trace(self, message: Any, request_id: str | None = None) -> None:
        self.log(message, "TRACE", request_id)

    def debug(self, message: Any, request_id: str | None = None) -> None:
        self.log(message, "DEBUG", request_id)

    def info(self, message: Any, request_id: str | None = None) -> None:
        self.log(message, "INFO", request_id)

    def warn(self, message: Any, request_id: str | None = None) -> None:
        self.log(message, "WARN", request_id)

    def error(self, message: Any, request_id: str | None = None) -> None:
        self.log(message, "ERROR", request_id)

    def tip(self, message: Any) -> None:
        self.log(message, "TIP")
