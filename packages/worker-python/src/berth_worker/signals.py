"""SIGTERM and SIGINT, as bytes in a pipe: a signal handler may not wait for a lock."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from .log import use_background_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .log import RunPodLogger

SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: One signal may be noted twice, see below. A second signal within this time counts as the same.
SAME_SIGNAL_SECONDS = 0.5


class Signals:
    """
    Calls back with the number of each signal, from a thread of its own. The interpreter writes the number
    itself (the wakeup file), for its signal handlers run in the main thread only, which a signal does not
    always wake. The handler writes it too: an event loop may have taken the wakeup file for itself.
    """

    def __init__(self, on_signal: Callable[[int], object], log: RunPodLogger) -> None:
        self._on_signal = on_signal
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        threading.Thread(target=self._run, name="berth-signals", daemon=True).start()
        try:
            for number in SIGNALS:
                signal.signal(number, self._note)
            signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_reset)
        except ValueError:
            log.warn("Signals stop a worker only where it is started in the main thread.")

    def _note(self, number: int, frame: FrameType | None) -> None:
        try:
            os.write(self._writer, bytes([number]))
        except BlockingIOError:
            pass

    def _run(self) -> None:
        use_background_log()
        last = float("-inf")
        while True:
            for number in os.read(self._reader, 1):
                if number in SIGNALS and time.monotonic() - last > SAME_SIGNAL_SECONDS:
                    last = time.monotonic()
                    self._on_signal(number)


def _reset() -> None:
    """A process that a handler forks has the signals of any process. Its end must not stop the worker."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
