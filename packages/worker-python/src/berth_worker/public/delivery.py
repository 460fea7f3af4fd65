"""A job whose progress, chunks and result go over HTTP."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from ..one_shot_event import OneShotEvent
from .posts import REFUSED

if TYPE_CHECKING:
    from ..delivery import Job
    from .posts import Posts

#: So many chunks may be under way before the handler has to wait. They are posted one by one, in order.
CHUNKS_AHEAD = 16


class PublicDelivery:
    """What is posted waits in order for one thread at a time."""

    def __init__(self, job: Job, posts: Posts) -> None:
        self.job = job
        self._posts = posts
        self._dropped = threading.Event()
        self._lock = threading.Lock()
        self._chunks: deque[tuple[bytes, str | None]] = deque()
        self._space: OneShotEvent | None = None
        #: A chunk was refused for so long that it was given up. From then on one refusal is enough.
        self._chunks_refused = False
        #: The latest value that is not yet on its way; earlier ones are obsolete.
        self._progress: bytes | None = None
        self._result: tuple[bytes, bool] | None = None
        self._settled = OneShotEvent()
        self._posting = False

    def progress(self, value: bytes) -> None:
        with self._lock:
            self._progress = value
            self._post()

    def chunk(self, body: bytes, mark: str | None = None) -> OneShotEvent | None:
        with self._lock:
            self._chunks.append((body, mark))
            self._post()
            if len(self._chunks) < CHUNKS_AHEAD or self._dropped.is_set():
                return None
            if self._space is None:
                self._space = OneShotEvent()
            return self._space

    def finish(self, body: bytes, streamed: bool) -> OneShotEvent:
        with self._lock:
            # A result that overtakes progress would be overwritten by a careless server.
            self._progress = None
            self._result = (body, streamed)
            self._post()
        return self._settled

    def return_job(self) -> bool:
        return False

    def waited(self, seconds: float) -> None:
        pass

    def drop(self) -> None:
        self._dropped.set()
        with self._lock:
            self._chunks.clear()
            self._progress = None
            space = self._space
        if space is not None:
            space.set()
        self._settled.set()

    def _post(self) -> None:
        if not self._posting:
            self._posting = True
            self._posts.submit(self._work)

    def _work(self) -> None:
        job_id = self.job["id"]
        while True:
            with self._lock:
                chunk = self._chunks.popleft() if self._chunks else None
                progress, self._progress = (None, self._progress) if chunk else (self._progress, None)
                result = None if chunk or progress is not None else self._result
                space = None
                if len(self._chunks) < CHUNKS_AHEAD:
                    space, self._space = self._space, None
                if chunk is None and progress is None and (result is None or self._dropped.is_set()):
                    self._posting = False
                    break
                if result is not None:
                    self._result = None
            if space is not None:
                space.set()
            if self._dropped.is_set():
                continue
            if chunk is not None:
                outcome = self._posts.chunk(
                    job_id, *chunk, patient=not self._chunks_refused, unwanted=self._dropped
                )
                self._chunks_refused = self._chunks_refused or outcome == REFUSED
            elif progress is not None:
                self._posts.progress(job_id, progress, self._dropped)
            elif result is not None:
                try:
                    self._posts.result(job_id, *result, unwanted=self._dropped)
                finally:
                    self._settled.set()
        if space is not None:
            space.set()
