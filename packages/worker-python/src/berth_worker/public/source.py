"""Jobs by the public worker protocol: requests that the server holds until there is something to say."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..log import use_background_log
from .abort import Abort
from .delivery import PublicDelivery
from .http_client import HttpClient
from .posts import Posts
from .stops import follow_stops
from .takes import Takes

if TYPE_CHECKING:
    from ..delivery import Consumer, Job
    from ..environment import Environment
    from ..log import RunPodLogger
    from ..pace import Pace


class PublicSource:
    """It ends in two steps: first the takes, then pings and stops."""

    def __init__(self, environment: Environment, log: RunPodLogger, pace: Pace) -> None:
        self._environment = environment
        self._addresses = environment.addresses
        self._log = log
        self._pace = pace
        self._http = HttpClient(environment.api_key, pace.begun_answer)
        self._posts = Posts(addresses=environment.addresses, http=self._http, log=log, pace=pace)
        self._takes: Takes | None = None
        self._listening: Abort | None = None

    def delivery_of(self, job: Job) -> PublicDelivery:
        """The way over HTTP for a job that came otherwise."""
        return PublicDelivery(job, self._posts)

    def open(self, consumer: Consumer) -> None:
        listening = self._listening = Abort()
        threading.Thread(target=self._ping, args=(consumer, listening), name="berth-pings", daemon=True).start()
        address = self._addresses.stops
        if address is not None:
            stops = (address, self._http, consumer, self._log, self._pace, listening)
            threading.Thread(target=follow_stops, args=stops, name="berth-stops", daemon=True).start()
        self._takes = Takes(addresses=self._addresses, http=self._http, posts=self._posts, consumer=consumer, log=self._log, pace=self._pace)

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

    def rest(self) -> None:
        """Takes, pings and asks no more, for jobs now come another way. What is still to be posted is posted."""
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
        address = self._addresses.unhealthy(check, reason)
        if address is None:
            return
        try:
            self._http.ask(address, silence=self._pace.unhealthy_report)
        except OSError as error:
            self._log.warn(f"The failed check could not be reported: {error}")

    def _ping(self, consumer: Consumer, over: Abort) -> None:
        """A ping that fails is followed by the next one."""
        use_background_log()
        seconds = self._environment.ping_seconds
        if not self._addresses.has_ping:
            self._log.warn("RUNPOD_WEBHOOK_PING is not set: no pings are sent")
            return
        while not over.is_set():
            try:
                self._http.ask(self._addresses.ping(consumer.held()) or "", silence=2 * seconds)
            except OSError as error:
                if not over.is_set():
                    self._log.warn(f"A ping failed: {error}")
            over.wait(seconds)
