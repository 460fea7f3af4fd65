"""A one-shot event that threads and event loops can both wait for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Gate:
    """Closed until `open` is called, then open for good."""

    __slots__ = ("_lock", "_is_open", "_callbacks")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        with self._lock:
            if self._is_open:
                return
            self._is_open = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_open(self, callback: Callable[[], object]) -> None:
        """Calls back once it is open, from whichever thread opens it; at once where it is open."""
        with self._lock:
            if not self._is_open:
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks this thread until the gate is open. False after the timeout."""
        event = threading.Event()
        self.on_open(event.set)
        return event.wait(timeout)
