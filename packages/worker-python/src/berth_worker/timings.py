"""Every pause and time limit, in seconds, in one place, so that a test can make them short."""

from __future__ import annotations

import random


class Timings:
    """The pauses and limits of one worker. Tests override single values by keyword."""

    #: After an empty answer that came at once.
    empty_answer = 1.0
    #: After 429.
    too_many = 5.0
    #: Retry pauses grow from the first to the longest.
    first_retry = 0.25
    longest_retry = 5.0
    #: A long poll without an answer is given up. The server holds one for less.
    poll = 90.0
    #: An answer that has begun may take this long to arrive whole once it is no longer wanted.
    begun_answer = 3.0
    #: A post whose connection has been silent for this long is sent again.
    post = 120.0
    #: A refused result (4xx) is tried for this long.
    refused_result = 60.0
    #: Once the worker stops, a result is tried for this long.
    last_result = 600.0
    #: The answer to the upgrade of the channel.
    upgrade = 3.0
    #: Until the channel is tried again where it may yet be offered.
    upgrade_again = 60.0
    #: A connection that lasted this long resets the retry pauses.
    good_connection = 5.0
    #: Unacknowledged results or heartbeats for this long mean that the connection is dead.
    dead_connection = 60.0
    #: For the server to read the last lines and close its side.
    closing = 2.0
    #: For a cancelled handler to end. After that its place goes to the next job.
    cancel_grace = 5.0
    #: Between two calls of `concurrency_modifier`.
    concurrency = 1.0
    unhealthy_report = 2.0
    #: Between the second signal and the end of the process.
    abort = 2.0

    def __init__(self, **overrides: float) -> None:
        for name, value in overrides.items():
            if not hasattr(Timings, name):
                raise TypeError(f"there is no timings {name!r}")
            setattr(self, name, value)


class Backoff:
    """Pauses that double, with jitter so that workers do not retry all at once."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._failures = 0

    def next(self) -> float:
        whole = min(self._timings.longest_retry, self._timings.first_retry * 2.0**self._failures)
        self._failures = min(self._failures + 1, 30)
        return whole * (0.5 + random.random() / 2)

    def reset(self) -> None:
        self._failures = 0
