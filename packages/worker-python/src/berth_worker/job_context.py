"""What a handler can know and say about the job that it runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .one_shot_event import OneShotEvent
from .json_text import output_bytes

if TYPE_CHECKING:
    from .delivery import Delivery, Job


class JobCancelled(Exception):
    """Raised by `raise_if_cancelled` in a job whose result is no longer wanted."""


class JobContext:
    """The running job as its handler sees it: `berth_worker.current_job()`."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._cancelled: OneShotEvent | None = None
        self._reason: str | None = None
        self.over = False

    @property
    def job(self) -> Job:
        return self._delivery.job

    @property
    def id(self) -> str:
        return str(self._delivery.job["id"])

    @property
    def cancelled(self) -> bool:
        """
        The job was cancelled or ran out of time, or the worker has to stop at once. No result is wanted.
        """
        return self._reason is not None

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Sleeps until the job is cancelled. False after the timeout: use it instead of `time.sleep`."""
        if self._cancelled is None:
            self._cancelled = OneShotEvent()
        if self._reason is not None:
            self._cancelled.set()
        return self._cancelled.wait(timeout)

    def raise_if_cancelled(self) -> None:
        if self._reason is not None:
            raise JobCancelled(self._reason)

    def progress(self, value: Any) -> None:
        """Shows a value as the output of the job while it runs. The latest one counts."""
        if self.over or self.cancelled:
            return
        self._delivery.progress(output_bytes("progress", value))

    def cancel(self, reason: str) -> bool:
        """Called by the worker. False where it was cancelled before."""
        if self._reason is not None:
            return False
        self._reason = reason
        self._delivery.drop()
        if self._cancelled is not None:
            self._cancelled.set()
        return True


current: ContextVar[JobContext | None] = ContextVar("berth_current_job", default=None)


def current_job() -> JobContext:
    """The job that the calling handler runs. In threads that a handler starts itself, pass it on."""
    context = current.get()
    if context is None:
        raise RuntimeError("current_job() is called outside of a handler")
    return context
