"""The channel where the server offers it, else the public protocol."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

from .channel.source import ChannelSource
from .public.source import PublicSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .channel.upgrade import Opened, Refused
    from .delivery import Consumer, Delivery
    from .environment import Environment
    from .log import RunPodLogger
    from .timings import Timings
    from .timers import Timer, Timers


class _PublicConsumer:
    """
    The consumer as the public protocol sees it: pings also name the jobs whose results are under way over the
    channel.
    """

    def __init__(self, consumer: Consumer, channel: ChannelSource) -> None:
        self._consumer = consumer
        self._channel = channel

    @property
    def concurrency(self) -> int:
        return self._consumer.concurrency

    def room(self, ahead: bool = False) -> int:
        return self._consumer.room()

    def step(self) -> int:
        return 1

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        self._consumer.deliver(deliveries)

    def stop(self, job_id: str) -> bool:
        return self._consumer.stop(job_id)

    def held(self) -> list[str]:
        return list(dict.fromkeys([*self._consumer.held(), *self._channel.unacknowledged()]))


class AutoSource:
    """Both ways back stay open: a job ends where it can."""

    def __init__(
        self,
        environment: Environment,
        url: str,
        *,
        log: RunPodLogger,
        timings: Timings,
        lock: threading.RLock,
        timers: Timers,
        channel_only: bool = False,
        first: Opened | None = None,
    ) -> None:
        self._log = log
        self._timings = timings
        self._timers = timers
        self._public = PublicSource(environment, log, timings)
        self._channel = ChannelSource(
            url=url,
            api_key=environment.api_key,
            ping_seconds=environment.ping_seconds,
            log=log,
            timings=timings,
            lock=lock,
            elsewhere=self._public.delivery_of,
            on_open=self._use_channel,
            on_refused=None if channel_only else self._use_public,
            first=first,
        )
        self._consumer: _PublicConsumer | None = None
        self._on_public = False
        self._was_open = False
        self._closed = False
        self._trying_again: Timer | None = None

    def open(self, consumer: Consumer) -> None:
        self._consumer = _PublicConsumer(consumer, self._channel)
        self._channel.open(consumer)

    def room_shrank(self) -> None:
        self._channel.room_shrank()
        self._public.room_shrank()

    def room_grew(self) -> None:
        self._channel.room_grew()
        self._public.room_grew()

    def unacknowledged(self) -> list[str]:
        return self._channel.unacknowledged()

    def leave(self) -> None:
        self._channel.leave()
        self._public.leave()

    def close(self) -> None:
        self._channel.close()
        self._closed = True
        if self._trying_again is not None:
            self._trying_again.cancel()
        self._public.close()

    def report_unhealthy(self, check: str, reason: str) -> None:
        if not self._channel.report_unhealthy(check, reason):
            self._public.report_unhealthy(check, reason)

    def _use_channel(self) -> None:
        self._was_open = True
        if not self._on_public:
            return
        self._on_public = False
        self._log.info("The server offers its channel again; jobs come over it from now on.")
        threading.Thread(target=self._public.suspend, name="berth-suspend", daemon=True).start()

    def _use_public(self, refusal: Refused) -> None:
        """Also while the worker leaves: pings go on for what it still runs, and it can be stopped."""
        if not self._on_public and self._consumer is not None:
            self._on_public = True
            self._log.info(
                f"The server does not offer its channel ({refusal.why}); jobs come by the public protocol."
            )
            self._public.open(self._consumer)
        if (refusal.lasting and not self._was_open) or self._closed:
            return
        self._trying_again = self._timers.call_later(
            self._timings.upgrade_again * (0.5 + random.random() / 2), self._channel.try_again
        )
