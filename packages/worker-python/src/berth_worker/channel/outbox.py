"""What this worker sends about its jobs. It is kept until the server has acknowledged it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..one_shot_event import OneShotEvent
from .unacked_chunks import Chunk, UnackedChunks
from .upgrade import Terms

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from ..delivery import Job
    from ..public.delivery import PublicDelivery
    from .connection import Connection
    from .delivery import ChannelDelivery

#: A result that was sent on so many connections, each of which broke, may be what broke them. It goes over
#: HTTP, where the server can refuse it.
MOST_CONNECTIONS = 3
#: With so many unacknowledged results, jobs keep their places: the server is behind.
MOST_UNACKNOWLEDGED = 10_000


class UnackedResult:
    """A result that is not acknowledged, or a job that is returned (without a body)."""

    __slots__ = ("delivery", "body", "streamed", "sent_at", "sent", "moved")

    def __init__(self, delivery: ChannelDelivery, body: bytes | None, streamed: bool, sent: int) -> None:
        self.delivery = delivery
        self.body = body
        self.streamed = streamed
        self.sent_at = time.monotonic()
        #: On how many connections it was sent.
        self.sent = sent
        #: It is on its way over HTTP.
        self.moved = False


class Outbox:
    """
    Every result and every numbered chunk is kept until it is acknowledged and sent again on the next
    connection. Where there is no channel to be had, it goes over HTTP.
    """

    def __init__(
        self,
        *,
        lock: threading.RLock,
        elsewhere: Callable[[Job], PublicDelivery],
        on_stays: Callable[[ChannelDelivery], object],
        on_settled: Callable[[], object],
    ) -> None:
        self._lock = lock
        self._elsewhere_of = elsewhere
        self._on_stays = on_stays
        self._on_settled = on_settled
        self._connection: Connection | None = None
        self._terms = Terms()
        self._without_channel = False
        self._closed = False
        self._deliveries: dict[bytes, ChannelDelivery] = {}
        self._parcels: dict[bytes, UnackedResult] = {}
        self._unacked = UnackedChunks()
        #: Deliveries with a progress value that was not sent yet, in the order in which it was set.
        self._showing: dict[bytes, ChannelDelivery] = {}
        #: Chunks without a number that wait for a connection.
        self._unsent_chunks: list[tuple[ChannelDelivery, bytes]] = []
        self._waiting: list[OneShotEvent] = []

    def expect(self, delivery: ChannelDelivery) -> bool:
        """A job has come. False where this attempt has come before."""
        if delivery.name in self._deliveries or delivery.name in self._parcels:
            return False
        self._deliveries[delivery.name] = delivery
        return True

    def unacknowledged(self) -> list[str]:
        """Jobs with a result. A returned job is not held here any more, and may be on its way here again."""
        with self._lock:
            return [
                unacked.delivery.job["id"] for unacked in self._parcels.values() if unacked.body is not None
            ]

    @property
    def settled(self) -> bool:
        return not self._parcels

    @property
    def since(self) -> float:
        """Since when something is not acknowledged."""
        oldest = next(iter(self._parcels.values()), None)
        return min(float("inf") if oldest is None else oldest.sent_at, self._unacked.since)

    # What the deliveries send.

    def send_progress(self, delivery: ChannelDelivery, value: bytes) -> None:
        """It leaves with the next write. A later value replaces one that has not left by then."""
        with self._lock:
            if self._goes_elsewhere:
                self._elsewhere(delivery).progress(value)
                return
            delivery.progress_to_send = value
            self._showing[delivery.name] = delivery
            if self._connection is not None:
                self._connection.wake()

    def send_chunk(self, delivery: ChannelDelivery, chunk: Chunk) -> OneShotEvent | None:
        with self._lock:
            if self._goes_elsewhere:
                return self._elsewhere(delivery).chunk(chunk.body, delivery.mark_of(chunk.number))
            connection = self._connection
            if connection is not None and not self._terms.keeps_chunks:
                delivery.numbered = False
            if delivery.numbered:
                self._unacked.add(delivery, chunk, connection is not None)
            elif connection is None:
                self._unsent_chunks.append((delivery, chunk.body))
            if connection is not None:
                connection.send(_chunk_line(delivery, chunk))
            return None if self._has_space else self._until_space()

    def send_result(self, delivery: ChannelDelivery, body: bytes, streamed: bool) -> OneShotEvent | None:
        with self._lock:
            self._deliveries.pop(delivery.name, None)
            self._showing.pop(delivery.name, None)
            if self._goes_elsewhere:
                return self._elsewhere(delivery).finish(body, streamed)
            self._post(delivery, body, streamed)
            congested = self._connection is not None and self._connection.congested
            return self._until_space() if congested or len(self._parcels) > MOST_UNACKNOWLEDGED else None

    def send_return(self, delivery: ChannelDelivery) -> bool:
        """A job that was not started. False where the server takes none back."""
        with self._lock:
            connection = self._connection
            if not self._terms.takes_back or self._goes_elsewhere or connection is None or connection.ending:
                return False
            self._deliveries.pop(delivery.name, None)
            self._post(delivery, None, False)
            return True

    def forget(self, delivery: ChannelDelivery) -> None:
        """Nothing more is sent about it."""
        with self._lock:
            self._deliveries.pop(delivery.name, None)
            self._showing.pop(delivery.name, None)
            self._unacked.remove(delivery.name)
            if self._unsent_chunks:
                self._unsent_chunks = [item for item in self._unsent_chunks if item[0] is not delivery]
            self._release_waiters()

    # Lines from the server, with the lock held.

    def acknowledged(self, name: bytes) -> None:
        # The server reads a result after the chunks of its job.
        self._unacked.remove(name)
        if self._parcels.pop(name, None) is None:
            return
        self.release_waiters_if_space()
        if self.settled:
            self._on_settled()

    def chunks_acknowledged(self, told: bytes) -> None:
        """`<jobId> <lease> <number>`"""
        name, _, number = told.rpartition(b" ")
        if not number.isdigit():
            return
        self._unacked.acknowledged(name, int(number))
        self.release_waiters_if_space()

    # The connection, with the lock held.

    def connect(self, connection: Connection, terms: Terms) -> None:
        """Whatever was not sent or not acknowledged goes over the new connection."""
        self._connection = connection
        self._terms = terms
        self._without_channel = False
        for delivery, body in self._unsent_chunks:
            connection.send(b"S " + delivery.name + b" " + body)
        self._unsent_chunks = []
        self._send_unacked(connection)
        for name, unacked in list(self._parcels.items()):
            if unacked.moved:
                continue
            if unacked.sent == MOST_CONNECTIONS:
                self._move_result(name, unacked)
            else:
                connection.send(self._line(unacked))
            unacked.sent += 1
        self.release_waiters_if_space()

    def before_write(self, connection: Connection) -> None:
        for delivery in self._showing.values():
            connection.send(b"P " + delivery.name + b" " + delivery.progress_to_send)
        self._showing.clear()

    def disconnect(self, unwritten: list[bytes]) -> None:
        """
        Of the lines that were never written, chunks without a number wait for the next connection; all else
        is kept anyway.
        """
        self._connection = None
        for line in unwritten:
            if not line.startswith(b"S "):
                continue
            job_id, lease, body = line[2:].split(b" ", 2)
            name = job_id + b" " + lease
            unacked = self._parcels.get(name)
            # A numbered chunk is not found here: its name carries the number.
            delivery = self._deliveries.get(name) or (unacked.delivery if unacked is not None else None)
            if delivery is not None:
                self._unsent_chunks.append((delivery, body))

    def move_elsewhere(self) -> None:
        """There is no channel any more: what was to go over it goes over HTTP."""
        self._without_channel = True
        for delivery, body in self._unsent_chunks:
            self._elsewhere(delivery).chunk(body)
        self._unsent_chunks = []
        for stream in self._unacked.streams():
            self._move_chunks(stream.delivery)
        for delivery in self._showing.values():
            self._elsewhere(delivery).progress(delivery.progress_to_send)
        self._showing.clear()
        for name, unacked in list(self._parcels.items()):
            if not unacked.moved:
                self._move_result(name, unacked)
        self._release_waiters()

    def release_waiters_if_space(self) -> None:
        if self._waiting and self._has_space:
            self._release_waiters()

    def close(self) -> list[str]:
        """Nothing more goes over the channel. Returns the jobs whose results are given up."""
        with self._lock:
            given_up = self.unacknowledged()
            self._parcels.clear()
            self._closed = True
            self._release_waiters()
            return given_up

    # Internals, with the lock held.

    @property
    def _goes_elsewhere(self) -> bool:
        return self._without_channel or self._closed

    @property
    def _has_space(self) -> bool:
        connection = self._connection
        return (
            connection is not None
            and not connection.congested
            and len(self._parcels) <= MOST_UNACKNOWLEDGED
            and not self._unacked.full
        )

    def _until_space(self) -> OneShotEvent:
        event = OneShotEvent()
        self._waiting.append(event)
        return event

    def _release_waiters(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()

    def _post(self, delivery: ChannelDelivery, body: bytes | None, streamed: bool) -> None:
        connection = self._connection
        unacked = UnackedResult(delivery, body, streamed, 0 if connection is None else 1)
        self._parcels[delivery.name] = unacked
        if connection is not None:
            connection.send(self._line(unacked))

    def _line(self, unacked: UnackedResult) -> bytes:
        """A server that takes jobs back also wants to know how long one waited here before it began."""
        delivery = unacked.delivery
        if unacked.body is None:
            return b"B " + delivery.name
        if self._terms.takes_back and delivery.waited_ms > 0:
            return b"D %b~%d %b" % (delivery.name, delivery.waited_ms, unacked.body)
        return b"D " + delivery.name + b" " + unacked.body

    def _send_unacked(self, connection: Connection) -> None:
        """Before the results of their jobs."""
        for stream in self._unacked.streams():
            delivery = stream.delivery
            if stream.sent == MOST_CONNECTIONS:
                self._move_chunks(delivery)
                unacked = self._parcels.get(delivery.name)
                if unacked is not None and not unacked.moved:
                    self._move_result(delivery.name, unacked)
                continue
            stream.sent += 1
            # A server that does not know numbers gets each chunk once. It does not say what it keeps.
            if not self._terms.keeps_chunks:
                delivery.numbered = False
                self._unacked.remove(delivery.name)
            for chunk in stream.chunks:
                connection.send(_chunk_line(delivery, chunk))

    def _elsewhere(self, delivery: ChannelDelivery) -> PublicDelivery:
        return delivery.move_to(self._elsewhere_of(delivery.job))

    def _move_chunks(self, delivery: ChannelDelivery) -> None:
        """Under their numbers: some of them may be stored already."""
        for chunk in self._unacked.remove(delivery.name):
            self._elsewhere(delivery).chunk(chunk.body, delivery.mark_of(chunk.number))

    def _move_result(self, name: bytes, unacked: UnackedResult) -> None:
        unacked.moved = True
        way = self._elsewhere(unacked.delivery)
        if unacked.body is None:
            # Over HTTP a job cannot be returned. It was not started, so it is run here after all.
            self.acknowledged(name)
            self._on_stays(unacked.delivery)
            return
        self._move_chunks(unacked.delivery)

        def sent() -> None:
            with self._lock:
                self.acknowledged(name)

        way.finish(unacked.body, unacked.streamed).on_set(sent)


def _chunk_line(delivery: ChannelDelivery, chunk: Chunk) -> bytes:
    if delivery.numbered:
        return b"S %b~%d %b" % (delivery.name, chunk.number, chunk.body)
    return b"S " + delivery.name + b" " + chunk.body
