"""The interfaces between the place where jobs come from and the place where they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .one_shot_event import OneShotEvent

#: A job as it was taken: everything that the platform sent, read as JSON.
Job = dict[str, Any]


class Delivery(Protocol):
    """A job of this worker, and where its results go. No method blocks or raises."""

    job: Job

    def progress(self, value: bytes) -> None:
        """Shows JSON text as the output so far."""

    def chunk(self, body: bytes) -> OneShotEvent | None:
        """
        Sends the body of a chunk after those before it. An event asks to be waited for before the next one.
        """

    def finish(self, body: bytes, streamed: bool) -> OneShotEvent | None:
        """
        Sends the result until it is acknowledged. An event asks that the job keeps its place until it is set.
        """

    def return_job(self) -> bool:
        """
        The job was not started and goes back as if it had never been taken. False where there is no way to do
        so.
        """

    def waited(self, seconds: float) -> None:
        """The job begins after so much time in this worker."""

    def drop(self) -> None:
        """No result is wanted any more: nothing is sent from now on, and every event is set."""


class Consumer(Protocol):
    """Runs the jobs in order of arrival."""

    @property
    def concurrency(self) -> int: ...

    def room(self, ahead: bool = False) -> int:
        """How many more jobs it can take; with those that it would take ahead, where they can be returned."""

    def step(self) -> int:
        """Less room than this is not worth a request, where jobs are taken ahead."""

    def deliver(self, deliveries: Iterable[Delivery]) -> None: ...

    def stop(self, job_id: str) -> bool:
        """Stops a job. False where there is no such job, or it was stopped before."""

    def held(self) -> list[str]:
        """The jobs that it holds."""


class JobSource(Protocol):
    """Where jobs come from and results go."""

    def open(self, consumer: Consumer) -> None: ...

    def room_shrank(self) -> None:
        """Jobs that were requested and have not come are not wanted any more."""

    def room_grew(self) -> None: ...

    def unacknowledged(self) -> list[str]:
        """The jobs without an acknowledged result whose places are free already."""

    def leave(self) -> None:
        """Takes no more jobs. Returns when none can come any more, as far as can be known."""

    def close(self) -> None:
        """
        After `leave`, when the consumer holds nothing: waits for the last acknowledgements and closes
        everything.
        """

    def report_unhealthy(self, check: str, reason: str) -> None: ...
