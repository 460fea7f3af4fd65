"""Callbacks after a while, all from one thread that starts when it is first needed."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """A callback that is due at some time, unless it is cancelled before."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    def __init__(self, on_error: Callable[[BaseException], object]) -> None:
        self._on_error = on_error
        self._changed = threading.Condition(threading.Lock())
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(callback)
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="berth-timers", daemon=True)
                self._thread.start()
            elif self._due[0][2] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        while True:
            timer = self._next()
            if timer.cancelled:
                continue
            try:
                timer.callback()
            except Exception as error:
                self._on_error(error)

    def _next(self) -> Timer:
        with self._changed:
            while True:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(wait)
