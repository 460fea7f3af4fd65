"""A one-shot event that threads and event loops can both wait for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class OneShotEvent:
    """Not set until `set` is called, then set for good."""

    __slots__ = ("_lock", "_is_set", "_callbacks")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._lock:
            if self._is_set:
                return
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], object]) -> None:
        """Calls back when it is set, from the thread that sets it; at once where it is set already."""
        with self._lock:
            if not self._is_set:
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks this thread until the event is set. False after the timeout."""
        event = threading.Event()
        self.on_set(event.set)
        return event.wait(timeout)
