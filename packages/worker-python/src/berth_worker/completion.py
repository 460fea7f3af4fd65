"""The end of a run: the log lines around it and the result that is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .one_shot_event import OneShotEvent
    from .log import RunPodLogger
    from .result import Result, ResultFormat
    from .running_jobs import Run, RunningJobs


class Completion:
    def __init__(
        self,
        jobs: RunningJobs,
        format: ResultFormat,
        log: RunPodLogger,
        on_refresh: Callable[[], object],
        on_exit: Callable[[int], object],
    ) -> None:
        self._jobs = jobs
        self.format = format
        self._log = log
        self._on_refresh = on_refresh
        self._on_exit = on_exit

    def started(self, run: Run) -> None:
        """
        Lines around a job say whose the lines between are. With several at a time they would say nothing and
        cost much.
        """
        if self._jobs.concurrency == 1:
            self._log.info("Started.", run.job["id"])

    def raised(self, error: BaseException, streamed: bool) -> Result:
        """
        A handler that ends the process fails its job, and the process ends after the result is acknowledged.
        """
        exits = isinstance(error, SystemExit)
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            self._on_exit(code)
            error.args = (f"the handler ended the process with exit code {code}",)
        if streamed:
            return self.format.generator_raised(error, refresh=exits)
        return self.format.raised(error, refresh=exits)

    def send(self, run: Run, result: Result, streamed: bool) -> OneShotEvent | None:
        """
        Sends the result, unless nobody wants it any more. An event asks that the job keeps its place until it
        is set.
        """
        run.context.over = True
        if self.format.after_job is not None:
            self.format.after_job()
        if run.context.cancelled:
            self._finished(run)
            return None
        if result.failed:
            self._log.error(f"The job failed: {result.body.decode(errors='replace')}", run.job["id"])
        self._finished(run)
        event = run.delivery.finish(result.body, streamed)
        if result.refresh:
            self._on_refresh()
        return event

    def _finished(self, run: Run) -> None:
        if self._jobs.concurrency == 1:
            self._log.info("Finished.", run.job["id"])
