"""A job that came over the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .unacked_chunks import Chunk

if TYPE_CHECKING:
    from ..delivery import Job
    from ..one_shot_event import OneShotEvent
    from ..public.delivery import PublicDelivery
    from .outbox import Outbox


class ChannelDelivery:
    """What comes of the job goes over the channel too, or over HTTP where there is no channel any more."""

    __slots__ = (
        "job",
        "lease",
        "name",
        "_outbox",
        "_elsewhere",
        "waited_ms",
        "_chunks",
        "numbered",
        "progress_to_send",
    )

    def __init__(self, job: Job, lease: bytes, outbox: Outbox) -> None:
        self.job = job
        self.lease = lease
        #: What names this attempt in every line.
        self.name: bytes = job["id"].encode("utf-8", "replace") + b" " + lease
        self._outbox = outbox
        self._elsewhere: PublicDelivery | None = None
        self.waited_ms = 0
        self._chunks = 0
        #: Its chunks have numbers, unless a server that knows none has got some of them.
        self.numbered = True
        self.progress_to_send = b""

    def progress(self, value: bytes) -> None:
        if self._elsewhere is not None:
            self._elsewhere.progress(value)
        else:
            self._outbox.send_progress(self, value)

    def chunk(self, body: bytes) -> OneShotEvent | None:
        self._chunks += 1
        if self._elsewhere is not None:
            return self._elsewhere.chunk(body, self.mark_of(self._chunks))
        return self._outbox.send_chunk(self, Chunk(self._chunks, body))

    def mark_of(self, number: int) -> str | None:
        """What names one of its chunks, so that it is stored once however often it is sent."""
        return f"{self.lease.decode()}~{number}" if self.numbered else None

    def finish(self, body: bytes, streamed: bool) -> OneShotEvent | None:
        if self._elsewhere is None:
            return self._outbox.send_result(self, body, streamed)
        self._outbox.forget(self)
        return self._elsewhere.finish(body, streamed)

    def waited(self, seconds: float) -> None:
        self.waited_ms = int(seconds * 1000)

    def return_job(self) -> bool:
        return self._elsewhere is None and self._outbox.send_return(self)

    def drop(self) -> None:
        if self._elsewhere is not None:
            self._elsewhere.drop()
        self._outbox.forget(self)

    def move_to(self, elsewhere: PublicDelivery) -> PublicDelivery:
        """From now on over HTTP."""
        if self._elsewhere is None:
            self._elsewhere = elsewhere
        return self._elsewhere
