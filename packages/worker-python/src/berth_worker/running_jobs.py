"""What this worker holds: jobs that run, up to its concurrency, and jobs that wait for a place."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from .job_context import JobContext
from .take_ahead import TakeAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .delivery import Delivery, Job
    from .log import RunPodLogger
    from .timers import Timer, Timers

#: A job that was taken ahead and has not started after this time is returned.
START_WITHIN_SECONDS = 0.25


class Run:
    """One run of a job in this worker."""

    __slots__ = ("delivery", "context", "delivered_at", "started_at", "stays", "on_cancel", "cancel_grace")

    def __init__(self, delivery: Delivery, now: float) -> None:
        self.delivery = delivery
        self.context = JobContext(delivery)
        self.delivered_at = now
        self.started_at = 0.0
        #: It waits here for as long as it takes: it could not be returned.
        self.stays = False
        #: Set by whoever runs it, so that a cancellation reaches the handler.
        self.on_cancel: Callable[[], object] | None = None
        self.cancel_grace: Timer | None = None

    @property
    def job(self) -> Job:
        return self.delivery.job


class Executor(Protocol):
    """Who runs the handler. It begins runs with `RunningJobs.begin`."""

    def wake(self) -> None:
        """Called with the lock held: some run may begin."""


class RunningJobs:
    """
    The state that every thread of the worker shares, under one lock. Callbacks are called with the lock held
    and never block.
    """

    def __init__(
        self,
        *,
        lock: threading.RLock,
        timers: Timers,
        log: RunPodLogger,
        cancel_grace_seconds: float,
        on_room: Callable[[], object],
        on_less_room: Callable[[], object],
        on_change: Callable[[], object],
    ) -> None:
        self._lock = lock
        self._timers = timers
        self._log = log
        self._cancel_grace_seconds = cancel_grace_seconds
        self._on_room = on_room
        self._on_less_room = on_less_room
        self._on_change = on_change
        self._running: set[Run] = set()
        self._waiting: deque[Run] = deque()
        self._by_job: dict[str, Run] = {}
        self._ahead = TakeAhead()
        self._concurrency = 1
        self._closed = False
        self._late_check: Timer | None = None
        self._idle = threading.Condition(lock)
        self.executor: Executor | None = None

    # What the job source asks.

    @property
    def concurrency(self) -> int:
        return self._concurrency

    def set_concurrency(self, concurrency: int) -> None:
        """Running jobs go on, also where there are now fewer places."""
        with self._lock:
            fewer = concurrency < self._concurrency
            self._concurrency = concurrency
            self._wake()
            if fewer:
                self._on_less_room()
            self._check_waiting()
            self._on_room()

    def room(self, ahead: bool = False) -> int:
        if self._closed:
            return 0
        places = self._concurrency + (self._ahead.jobs(self._concurrency) if ahead else 0)
        return max(0, places - len(self._running) - len(self._waiting))

    def step(self) -> int:
        """Half of what is taken ahead: running jobs never wait for it, and jobs come in large batches."""
        return max(1, self._ahead.jobs(self._concurrency) // 2)

    def held(self) -> list[str]:
        with self._lock:
            return list(
                dict.fromkeys(
                    [run.job["id"] for run in self._running] + [run.job["id"] for run in self._waiting]
                )
            )

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        now = time.monotonic()
        with self._lock:
            for delivery in deliveries:
                job_id = delivery.job["id"]
                # The server gave up the earlier run, or it would not deliver the job again.
                earlier = self._by_job.get(job_id)
                if earlier is not None:
                    self._stop(earlier, "the job was given to this worker anew")
                run = Run(delivery, now)
                self._by_job[job_id] = run
                self._waiting.append(run)
            self._on_change()
            self._wake()
            self._check_waiting()

    def stop(self, job_id: str) -> bool:
        with self._lock:
            run = self._by_job.get(job_id)
            return run is not None and self._stop(run, "the job was cancelled or ran out of time")

    # What the executor asks.

    def can_start(self) -> int:
        """How many runs may begin now."""
        return min(len(self._waiting), max(0, self._concurrency - len(self._running)))

    def begin(self) -> Run:
        """The next run, which has a place from now on. Only where `can_start`, with the lock held."""
        run = self._waiting.popleft()
        self._running.add(run)
        run.started_at = time.monotonic()
        run.delivery.waited(run.started_at - run.delivered_at)
        return run

    def ended(self, run: Run) -> None:
        """The handler has ended, and its result needs its place no longer."""
        with self._lock:
            if run not in self._running:
                return
            self._running.remove(run)
            self._ahead.ended(time.monotonic() - run.started_at)
            if run.cancel_grace is not None:
                run.cancel_grace.cancel()
            self._forget(run)
            self._wake()
            self._after_end()

    def has(self, run: Run) -> bool:
        """False where a cancelled run has lost its place."""
        return run in self._running

    def find(self, job_id: str) -> Run | None:
        return self._by_job.get(job_id)

    # Stopping.

    @property
    def idle(self) -> bool:
        return not self._running and not self._waiting

    def wait_idle(self) -> None:
        with self._idle:
            while not self.idle:
                self._idle.wait()

    def close(self) -> None:
        """
        Asks for no more jobs. What was taken ahead is returned; what comes all the same is returned or run.
        """
        with self._lock:
            self._closed = True
            self._return_waiting()

    def stop_all(self) -> None:
        with self._lock:
            for run in [*self._waiting, *self._running]:
                self._stop(run, "the worker has to stop at once")

    # Internals, with the lock held.

    def _wake(self) -> None:
        if self._waiting and self.executor is not None:
            self.executor.wake()

    def _stop(self, run: Run, reason: str) -> bool:
        if not run.context.cancel(reason):
            return False
        if run in self._running:
            self._log.info("Stopping job.", run.job["id"])
            run.cancel_grace = self._timers.call_later(self._cancel_grace_seconds, lambda: self.ended(run))
            if run.on_cancel is not None:
                run.on_cancel()
        elif run in self._waiting:
            self._waiting.remove(run)
            self._forget(run)
            self._after_end()
        return True

    def _check_waiting(self) -> None:
        """Jobs that wait beyond the free places begin in time or are returned."""
        if len(self._waiting) <= self._kept():
            return
        if self._closed:
            self._return_waiting()
        elif self._late_check is None:
            self._late_check = self._timers.call_later(START_WITHIN_SECONDS, self._return_late)

    def _return_late(self) -> None:
        with self._lock:
            self._late_check = None
            first = next((run for run in islice(self._waiting, self._kept(), None) if not run.stays), None)
            if first is not None and time.monotonic() - first.delivered_at >= START_WITHIN_SECONDS:
                self._ahead.forget()
                self._on_less_room()
                self._return_waiting()
            self._check_waiting()

    def _kept(self) -> int:
        """How many waiting jobs have a free place."""
        return max(0, self._concurrency - len(self._running))

    def _return_waiting(self) -> None:
        kept = self._kept()
        beyond = [self._waiting.pop() for _ in range(len(self._waiting) - kept)]
        for run in reversed(beyond):
            if run.delivery.return_job():
                self._forget(run)
            else:
                run.stays = True
                self._waiting.append(run)
        if beyond:
            self._after_end()

    def _forget(self, run: Run) -> None:
        if self._by_job.get(run.job["id"]) is run:
            del self._by_job[run.job["id"]]

    def _after_end(self) -> None:
        self._on_change()
        self._on_room()
        if self.idle:
            self._idle.notify_all()
