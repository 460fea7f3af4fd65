"""Asks the handler's configuration how many jobs shall run at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .log import use_background_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from .log import RunPodLogger
    from .running_jobs import RunningJobs


class ConcurrencyModifier:
    """Calls `concurrency_modifier(current)` once a second. 0 takes no jobs until it is asked again."""

    def __init__(
        self,
        modifier: Callable[[int], Any],
        jobs: RunningJobs,
        seconds: float,
        log: RunPodLogger,
        most: int | None = None,
    ) -> None:
        self._modifier = modifier
        self._jobs = jobs
        self._seconds = seconds
        self._log = log
        self._most = most
        self._over = threading.Event()
        self._answered = 1

    def ask(self) -> None:
        try:
            wanted = self._modifier(self._answered)
            if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
                raise ValueError(f"it answered {wanted!r}, which is not a whole number from 0")
        except Exception as error:
            self._log.warn(
                f"The concurrency stays {self._jobs.concurrency}; concurrency_modifier failed: {error}"
            )
            return
        self._answered = wanted
        allowed = wanted if self._most is None else min(self._most, wanted)
        if allowed != self._jobs.concurrency:
            self._log.debug(f"The concurrency is {allowed} from now on.")
            self._jobs.set_concurrency(allowed)

    def follow(self) -> None:
        threading.Thread(target=self._run, name="berth-concurrency", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        use_background_log()
        while not self._over.wait(self._seconds):
            self.ask()
