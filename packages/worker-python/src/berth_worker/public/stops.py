"""Asks which jobs to stop, all the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..log import use_background_log
from ..pace import Backoff
from .pauses import after_empty, after_too_many

if TYPE_CHECKING:
    from ..delivery import Consumer
    from ..log import RunPodLogger
    from ..pace import Pace
    from .abort import Abort
    from .http_client import Answer, HttpClient


def follow_stops(address: str, http: HttpClient, consumer: Consumer, log: RunPodLogger, pace: Pace, over: Abort) -> None:
    use_background_log()
    backoff = Backoff(pace)
    while not over.is_set():
        pause = _ask(address, http, consumer, log, pace, over, backoff)
        if pause > 0:
            over.wait(pause)


def _ask(address: str, http: HttpClient, consumer: Consumer, log: RunPodLogger, pace: Pace, over: Abort, backoff: Backoff) -> float:
    """Answers how long to wait before the next request."""
    asked_at = time.monotonic()
    try:
        answer = http.ask(address, silence=pace.poll, abort=over)
    except OSError as error:
        why = str(error)
    else:
        if answer.status == 429:
            return after_too_many(answer, pace)
        if answer.status in (200, 204):
            backoff.reset()
            # The same jobs again are no news.
            stopped = [job_id for job_id in _jobs_to_stop(answer) if consumer.stop(job_id)]
            return 0.0 if stopped else after_empty(asked_at, pace)
        why = f"the server answered {answer.status}"
    if over.is_set():
        return 0.0
    log.warn(f"It is not known which jobs to stop: {why}")
    return backoff.next()


def _jobs_to_stop(answer: Answer) -> list[str]:
    listed = answer.json.get("jobsToStop") if isinstance(answer.json, dict) else None
    return [job_id for job_id in listed if isinstance(job_id, str)] if isinstance(listed, list) else []
