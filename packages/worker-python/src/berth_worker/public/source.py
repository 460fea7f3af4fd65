"""Jobs by the public worker protocol: long polls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..log import use_background_log
from .abort import Abort
from .delivery import PublicDelivery
from .http_client import HttpClient
from .posts import Posts
from .cancellations import poll_cancellations
from .takes import Takes

if TYPE_CHECKING:
    from ..delivery import Consumer, Job
    from ..environment import Environment
    from ..log import RunPodLogger
    from ..timings import Timings


class PublicSource:
    """It closes in two steps: first takes, then pings and cancellations."""

    def __init__(self, environment: Environment, log: RunPodLogger, timings: Timings) -> None:
        self._environment = environment
        self._urls = environment.urls
        self._log = log
        self._timings = timings
        self._http = HttpClient(environment.api_key, timings.begun_answer)
        self._posts = Posts(urls=environment.urls, http=self._http, log=log, timings=timings)
        self._takes: Takes | None = None
        self._listening: Abort | None = None

    def delivery_of(self, job: Job) -> PublicDelivery:
        """For a job that came over the channel: its result goes over HTTP."""
        return PublicDelivery(job, self._posts)

    def open(self, consumer: Consumer) -> None:
        listening = self._listening = Abort()
        threading.Thread(
            target=self._ping, args=(consumer, listening), name="berth-pings", daemon=True
        ).start()
        url = self._urls.cancellations
        if url is not None:
            stops = (url, self._http, consumer, self._log, self._timings, listening)
            threading.Thread(
                target=poll_cancellations, args=stops, name="berth-cancellations", daemon=True
            ).start()
        self._takes = Takes(
            urls=self._urls,
            http=self._http,
            posts=self._posts,
            consumer=consumer,
            log=self._log,
            timings=self._timings,
        )

    def room_shrank(self) -> None:
        if self._takes is not None:
            self._takes.room_shrank()

    def room_grew(self) -> None:
        if self._takes is not None:
            self._takes.room_grew()

    def unacknowledged(self) -> list[str]:
        return []

    def leave(self) -> None:
        self._posts.leave()
        if self._takes is not None:
            self._takes.end()

    def suspend(self) -> None:
        """
        Stops takes, pings and cancellation polls, because jobs now come over the channel. Posts continue.
        """
        takes, listening = self._takes, self._listening
        self._takes = self._listening = None
        if takes is not None:
            takes.end()
        if listening is not None:
            listening.set()

    def close(self) -> None:
        self.leave()
        if self._listening is not None:
            self._listening.set()
        self._http.close()

    def report_unhealthy(self, check: str, reason: str) -> None:
        url = self._urls.unhealthy(check, reason)
        if url is None:
            return
        try:
            self._http.ask(url, silence=self._timings.unhealthy_report)
        except OSError as error:
            self._log.warn(f"The failed check could not be reported: {error}")

    def _ping(self, consumer: Consumer, over: Abort) -> None:
        """A ping that fails is followed by the next one."""
        use_background_log()
        seconds = self._environment.ping_seconds
        if not self._urls.has_ping:
            self._log.warn("RUNPOD_WEBHOOK_PING is not set: no pings are sent")
            return
        while not over.is_set():
            try:
                self._http.ask(self._urls.ping(consumer.held()) or "", silence=2 * seconds)
            except OSError as error:
                if not over.is_set():
                    self._log.warn(f"A ping failed: {error}")
            over.wait(seconds)
