"""What a worker posts about its jobs over HTTP."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ..log import use_background_log
from ..timings import Backoff
from .http_client import UnsendableRequest
from .retry_delays import after_too_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..log import RunPodLogger
    from ..timings import Timings
    from .urls import Urls
    from .http_client import HttpClient

#: Progress is sent once, with a short timeout.
PROGRESS_SECONDS = 5.0
#: At most so many posts at a time; the others wait.
MOST_THREADS = 64

ACCEPTED, LATER, REFUSED, TOO_LARGE, IMPOSSIBLE = "accepted", "later", "refused", "too large", "impossible"


class _Post(NamedTuple):
    what: str
    url: str
    job_id: str
    body: bytes
    mark: str | None
    unwanted: threading.Event


class Posts:
    def __init__(self, *, urls: Urls, http: HttpClient, log: RunPodLogger, timings: Timings) -> None:
        self._urls = urls
        self._http = http
        self._log = log
        self._timings = timings
        self._left_at: float | None = None
        self._said_that_stream_is_missing = False
        self._work = threading.Condition()
        self._queue: list[Callable[[], object]] = []
        self._free_threads = 0
        self._started_threads = 0

    def submit(self, work: Callable[[], object]) -> None:
        """Runs the work in one of the posting threads."""
        with self._work:
            self._queue.append(work)
            if self._free_threads < len(self._queue) and self._started_threads < MOST_THREADS:
                self._started_threads += 1
                threading.Thread(target=self._run, name="berth-posts", daemon=True).start()
            else:
                self._work.notify()

    def _run(self) -> None:
        use_background_log()
        while True:
            with self._work:
                self._free_threads += 1
                while not self._queue:
                    self._work.wait()
                self._free_threads -= 1
                work = self._queue.pop(0)
            try:
                work()
            except Exception as error:
                self._log.error(f"A post failed: {type(error).__name__}: {error}")

    def leave(self) -> None:
        """The worker stops: results are not tried for ever from now on."""
        if self._left_at is None:
            self._left_at = time.monotonic()

    def result(self, job_id: str, body: bytes, streamed: bool, unwanted: threading.Event) -> None:
        """
        Sends a result until it is acknowledged. It may arrive twice, and counts once. It is given up when it
        is no longer wanted, is refused for good, or the worker has stopped long ago.
        """
        url = self._urls.done(job_id, streamed)
        if (
            self._send_until_accepted(
                _Post("result", url, job_id, body, None, unwanted), self._timings.refused_result
            )
            != TOO_LARGE
        ):
            return
        why = f"the result of {len(body)} bytes is larger than the server accepts"
        self._log.error(f"The job fails: {why}", job_id)
        error = json.dumps({"error": why}).encode()
        if (
            self._send_until_accepted(
                _Post("result", url, job_id, error, None, unwanted), self._timings.refused_result
            )
            == TOO_LARGE
        ):
            self._log.error(
                "The result was given up: not even the error is small enough for the server", job_id
            )

    def chunk(
        self, job_id: str, body: bytes, mark: str | None, patient: bool, unwanted: threading.Event
    ) -> str | None:
        """A refused chunk is tried for a while where `patient`."""
        url = self._urls.stream(job_id)
        if url is None:
            if not self._said_that_stream_is_missing:
                self._log.warn("RUNPOD_WEBHOOK_POST_STREAM is not set: chunks are not sent", job_id)
            self._said_that_stream_is_missing = True
            return None
        outcome = self._send_until_accepted(
            _Post("chunk", url, job_id, body, mark, unwanted),
            self._timings.refused_result if patient else 0.0,
        )
        if outcome == TOO_LARGE:
            self._log.error(
                f"A chunk of {len(body)} bytes is larger than the server accepts and is left out. "
                "Yield it in smaller pieces.",
                job_id,
            )
        return outcome

    def progress(self, job_id: str, value: bytes, unwanted: threading.Event) -> None:
        body = b'{"status":"IN_PROGRESS","output":' + value + b"}"
        self._once(
            _Post("progress", self._urls.done(job_id, False), job_id, body, None, unwanted), PROGRESS_SECONDS
        )

    def _send_until_accepted(self, post: _Post, refused_seconds: float) -> str:
        backoff = Backoff(self._timings)
        started_at = time.monotonic()
        while True:
            outcome, why, pause = self._once(post, self._timings.post)
            if outcome in (ACCEPTED, TOO_LARGE) or post.unwanted.is_set():
                return outcome
            if self._is_given_up(outcome, started_at, refused_seconds):
                self._log.error(f"The {post.what} was given up: {why}", post.job_id)
                return outcome
            self._log.warn(f"The {post.what} was not accepted and is sent again: {why}", post.job_id)
            post.unwanted.wait(backoff.next() if pause is None else pause)

    def _is_given_up(self, outcome: str, started_at: float, refused_seconds: float) -> bool:
        now = time.monotonic()
        if outcome == IMPOSSIBLE:
            return True
        if outcome == REFUSED:
            return now - started_at >= refused_seconds
        return self._left_at is not None and now - max(started_at, self._left_at) > self._timings.last_result

    def _once(self, post: _Post, silence: float) -> tuple[str, str, float | None]:
        """The outcome, why it is that, and the pause that the server asks for."""
        try:
            answer = self._http.ask(
                post.url, body=post.body, job_id=post.job_id, mark=post.mark, silence=silence
            )
        except UnsendableRequest as error:
            return IMPOSSIBLE, str(error), None
        except OSError as error:
            return LATER, str(error) or type(error).__name__, None
        pause = after_too_many(answer, self._timings) if answer.status == 429 else None
        return _outcome(answer.status), f"the server answered {answer.status}", pause


def _outcome(status: int) -> str:
    """
    Of 4xx, three mean that it may succeed later. So does any other status, such as a redirect that could not
    be followed.
    """
    if 200 <= status < 300:
        return ACCEPTED
    if status == 413:
        return TOO_LARGE
    return REFUSED if 400 <= status < 500 and status not in (408, 425, 429) else LATER
