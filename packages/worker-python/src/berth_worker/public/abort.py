"""A flag that wakes threads which wait for a socket."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Abort:
    """Like `threading.Event`, but `select` can wait for it too."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reader, self._writer = socket.socketpair()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    def fileno(self) -> int:
        return self._reader.fileno()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        self._writer.send(b"x")
        for callback in callbacks:
            callback()

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)

    def when_set(self, callback: Callable[[], object]) -> None:
        """Calls back when it is set. The latest callback counts: there is one request at a time."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks = [callback]
                return
        callback()
