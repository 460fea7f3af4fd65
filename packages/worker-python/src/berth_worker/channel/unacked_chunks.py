"""The chunks that the server has not acknowledged yet, each job's in order."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .delivery import ChannelDelivery

#: At most so many bytes of chunks wait for acknowledgements. Beyond that generators wait.
MOST_UNACKED = 8 * 1024 * 1024
#: What an entry takes besides its text.
OVERHEAD = 100


class Chunk(NamedTuple):
    number: int
    body: bytes


class ChunkStream:
    """The chunks of one job."""

    __slots__ = ("delivery", "chunks", "since", "sent")

    def __init__(self, delivery: ChannelDelivery, sent: int) -> None:
        self.delivery = delivery
        self.chunks: deque[Chunk] = deque()
        #: Since when the first of them waits.
        self.since = time.monotonic()
        #: On how many connections the first of them was sent.
        self.sent = sent


class UnackedChunks:
    def __init__(self) -> None:
        self._streams: dict[bytes, ChunkStream] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        return self._size >= MOST_UNACKED

    def add(self, delivery: ChannelDelivery, chunk: Chunk, sent: bool) -> None:
        stream = self._streams.get(delivery.name)
        if stream is None:
            stream = self._streams[delivery.name] = ChunkStream(delivery, 1 if sent else 0)
        stream.chunks.append(chunk)
        self._size += len(chunk.body) + OVERHEAD

    def acknowledged(self, name: bytes, up_to: int) -> None:
        """Everything of the job up to a number is on the server's disk."""
        stream = self._streams.get(name)
        if stream is None:
            return
        before = len(stream.chunks)
        while stream.chunks and stream.chunks[0].number <= up_to:
            self._size -= len(stream.chunks.popleft().body) + OVERHEAD
        if not stream.chunks:
            del self._streams[name]
        elif len(stream.chunks) < before:
            stream.since = time.monotonic()
            stream.sent = 1

    def remove(self, name: bytes) -> list[Chunk]:
        """The chunks of a job, which somebody else takes care of from now on."""
        stream = self._streams.pop(name, None)
        if stream is None:
            return []
        self._size -= sum(len(chunk.body) + OVERHEAD for chunk in stream.chunks)
        return list(stream.chunks)

    def streams(self) -> list[ChunkStream]:
        return list(self._streams.values())

    @property
    def since(self) -> float:
        """Since when the oldest waits."""
        return min((stream.since for stream in self._streams.values()), default=float("inf"))
