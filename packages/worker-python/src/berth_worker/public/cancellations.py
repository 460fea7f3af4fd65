"""Asks which jobs to stop, all the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..log import use_background_log
from ..timings import Backoff
from .retry_delays import after_empty, after_too_many

if TYPE_CHECKING:
    from ..delivery import Consumer
    from ..log import RunPodLogger
    from ..timings import Timings
    from .abort import Abort
    from .http_client import Answer, HttpClient


def poll_cancellations(
    url: str, http: HttpClient, consumer: Consumer, log: RunPodLogger, timings: Timings, over: Abort
) -> None:
    use_background_log()
    backoff = Backoff(timings)
    while not over.is_set():
        pause = _ask(url, http, consumer, log, timings, over, backoff)
        if pause > 0:
            over.wait(pause)


def _ask(
    url: str,
    http: HttpClient,
    consumer: Consumer,
    log: RunPodLogger,
    timings: Timings,
    over: Abort,
    backoff: Backoff,
) -> float:
    """Answers how long to wait before the next request."""
    asked_at = time.monotonic()
    try:
        answer = http.ask(url, silence=timings.poll, abort=over)
    except OSError as error:
        why = str(error)
    else:
        if answer.status == 429:
            return after_too_many(answer, timings)
        if answer.status in (200, 204):
            backoff.reset()
            # Jobs that were stopped before do not count.
            stopped = [job_id for job_id in _jobs_to_stop(answer) if consumer.stop(job_id)]
            return 0.0 if stopped else after_empty(asked_at, timings)
        why = f"the server answered {answer.status}"
    if over.is_set():
        return 0.0
    log.warn(f"It is not known which jobs to stop: {why}")
    return backoff.next()


def _jobs_to_stop(answer: Answer) -> list[str]:
    listed = answer.json.get("jobsToStop") if isinstance(answer.json, dict) else None
    return [job_id for job_id in listed if isinstance(job_id, str)] if isinstance(listed, list) else []
