"""The URLs of the public protocol, from the templates in the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ..version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The list of a ping has at most this length, so that servers still accept the URL.
LONGEST_LIST = 65_535


class Urls:
    """
    In the URL of job-take `$ID` is the worker; in those of results and chunks `$RUNPOD_POD_ID` is the worker
    and `$ID` the job.
    """

    def __init__(self, *, take: str, done: str, stream: str | None, ping: str | None, worker_id: str) -> None:
        self._take = take.replace("$ID", worker_id)
        self._done = done.replace("$RUNPOD_POD_ID", worker_id)
        self._stream = None if stream is None else stream.replace("$RUNPOD_POD_ID", worker_id)
        self._ping = None if ping is None else ping.replace("$RUNPOD_POD_ID", worker_id)

    def take(self, room: int, busy: bool) -> str:
        """One job is requested at one URL, several at another."""
        in_progress = f"job_in_progress={1 if busy else 0}"
        if room == 1:
            return _with_query(self._take, in_progress)
        return _with_query(
            self._take.replace("/job-take/", "/job-take-batch/"), f"batch_size={room}&{in_progress}"
        )

    @property
    def cancellations(self) -> str | None:
        """None where the URL of job-take does not have the shape that this one is derived from."""
        return self._sibling("/job-stop/")

    @property
    def channel(self) -> str | None:
        return self._sibling("/job-channel/")

    def done(self, job_id: str, streamed: bool) -> str:
        return _with_query(_with_job(self._done, job_id), f"isStream={'true' if streamed else 'false'}")

    def stream(self, job_id: str) -> str | None:
        """`isStream` is false here: it marks the result that ends a stream."""
        return (
            None if self._stream is None else _with_query(_with_job(self._stream, job_id), "isStream=false")
        )

    @property
    def has_ping(self) -> bool:
        return self._ping is not None

    def ping(self, job_ids: Sequence[str], most: int | None = None, partial: bool = False) -> str | None:
        """
        A list that does not name every job says so: otherwise the server would take the others for gone.
        """
        if self._ping is None:
            return None
        named = _fitting(job_ids, most)
        listed = f"job_id={_encoded(','.join(named))}&" if named else ""
        mark = "job_ids=partial&" if partial or len(named) < len(job_ids) else ""
        return _with_query(self._ping, f"{listed}{mark}berth_version={__version__}")

    def unhealthy(self, check: str, reason: str) -> str | None:
        if self._ping is None:
            return None
        return _with_query(
            self._ping,
            f"status=unhealthy&check={_encoded(check)}&reason={_encoded(reason)}&berth_version={__version__}",
        )

    def _sibling(self, part: str) -> str | None:
        return self._take.replace("/job-take/", part) if "/job-take/" in self._take else None


def _with_job(template: str, job_id: str) -> str:
    return template.replace("$ID", _encoded(job_id))


def _encoded(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def _fitting(job_ids: Sequence[str], most: int | None) -> Sequence[str]:
    """The first ids, as many as fit into a list."""
    length = -1
    for index, job_id in enumerate(job_ids):
        length += len(job_id) + 1
        if index == most or length > LONGEST_LIST:
            return job_ids[:index]
    return job_ids
