"""
Asks for jobs as long as there is room for some: one request at a time, for as many as there is room for.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ..log import use_background_log
from ..timings import Backoff
from .abort import Abort
from .delivery import PublicDelivery
from .retry_delays import after_empty, after_too_many

if TYPE_CHECKING:
    from ..delivery import Consumer
    from ..log import RunPodLogger
    from ..timings import Timings
    from .urls import Urls
    from .http_client import Answer, HttpClient
    from .posts import Posts


class Takes:
    """
    A request that is aborted is not read any more, but where its answer has begun to come, its jobs are
    delivered.
    """

    def __init__(
        self,
        *,
        urls: Urls,
        http: HttpClient,
        posts: Posts,
        consumer: Consumer,
        log: RunPodLogger,
        timings: Timings,
    ) -> None:
        self._urls = urls
        self._http = http
        self._posts = posts
        self._consumer = consumer
        self._log = log
        self._timings = timings
        self._backoff = Backoff(timings)
        self._room = threading.Event()
        self._over = threading.Event()
        self._request = Abort()
        self._logged_reason = ""
        self._thread = threading.Thread(target=self._run, name="berth-takes", daemon=True)
        self._thread.start()

    def room_grew(self) -> None:
        self._room.set()

    def room_shrank(self) -> None:
        """The open request may ask for more than there is room for now. The next one does not."""
        self._request.set()

    def end(self) -> None:
        self._over.set()
        self._room.set()
        self._request.set()
        self._thread.join()

    def _run(self) -> None:
        use_background_log()
        while not self._over.is_set():
            self._room.clear()
            room = self._consumer.room()
            if room <= 0:
                self._room.wait()
                continue
            self._request = Abort()
            if self._over.is_set():
                return
            pause = self._take(room)
            if pause > 0:
                self._over.wait(pause)

    def _take(self, room: int) -> float:
        """Answers how long to wait before the next request."""
        asked_at = time.monotonic()
        try:
            answer = self._http.ask(
                self._urls.take(room, bool(self._consumer.held())),
                silence=self._timings.poll,
                abort=self._request,
            )
        except OSError as error:
            why = str(error)
        else:
            if answer.status == 429:
                self._log_reason(answer)
                return after_too_many(answer, self._timings)
            # 400 is what the hosted service answers to a worker that it has just woken up.
            if answer.status in (200, 204, 400):
                self._backoff.reset()
                self._logged_reason = ""
                return 0.0 if self._deliver(answer) else after_empty(asked_at, self._timings)
            why = _reason(answer)
        if self._request.is_set():
            return 0.0
        self._log.warn(f"No jobs could be taken: {why}")
        return self._backoff.next()

    def _deliver(self, answer: Answer) -> int:
        found = answer.json if answer.status == 200 else None
        candidates: list[Any] = found if isinstance(found, list) else [] if found is None else [found]
        jobs = [job for job in candidates if is_job(job)]
        if jobs:
            self._consumer.deliver([PublicDelivery(job, self._posts) for job in jobs])
        if len(jobs) < len(candidates):
            self._log.error(
                f"The server answered {len(candidates) - len(jobs)} jobs without an id that is text; "
                "they are left out."
            )
        return len(jobs)

    def _log_reason(self, answer: Answer) -> None:
        """Once for each reason."""
        why = _reason(answer)
        if why != self._logged_reason:
            self._log.warn(f"No jobs for now: {why}")
        self._logged_reason = why


def _reason(answer: Answer) -> str:
    said = answer.json.get("error") if isinstance(answer.json, dict) else None
    return f"the server answered {answer.status}{f': {said}' if isinstance(said, str) else ''}"


def is_job(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("id"), str) and value["id"] != ""
