"""A worker from its first check to its last acknowledgement."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from .completion import Completion
from .concurrency import ConcurrencyModifier
from .environment import Environment
from .fitness import UnhealthyError, run_fitness_checks
from .handler_kind import is_async
from .log import RunPodLogger, flush_background_log, use_background_log
from .timings import Timings
from .ping_process import PingProcess
from .result import ResultFormat
from .running_jobs import RunningJobs
from .signals import Signals
from .timers import Timers
from .version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Union

    from .channel.upgrade import Opened
    from .delivery import JobSource
    from .loop_executor import LoopExecutor
    from .thread_executor import ThreadExecutor

    AnyExecutor = Union[LoopExecutor, ThreadExecutor]

#: What runs comes first; no server reads a URL of any length.
MOST_PINGED = 300
CHANNELS = ("auto", "public", "fast")

#: The worker that runs in this process, for progress updates.
active: Worker | None = None


class Worker:
    """
    Takes jobs until it is stopped or a job asks for a new worker; then it finishes what it has. The thread
    that calls `run` runs handlers. Others talk to the server.
    """

    def __init__(
        self,
        handler: Callable[[Any], Any],
        *,
        format: ResultFormat | None = None,
        concurrency: int = 1,
        concurrency_modifier: Callable[[int], Any] | None = None,
        channel: str = "auto",
        env: Mapping[str, str] | None = None,
        timings: Timings | None = None,
        checks: Callable[[RunPodLogger], object] = run_fitness_checks,
        signals: bool = True,
        one_at_a_time: bool = False,
        first: Opened | None = None,
    ) -> None:
        """
        `one_at_a_time`: plain functions never run in parallel, whatever the concurrency says. `first`: a
        channel that is open already.
        """
        if channel not in CHANNELS:
            raise ValueError(f'channel is "{channel}"; it is one of {", ".join(CHANNELS)}')
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise ValueError(f"concurrency is {concurrency!r}; it is a whole number from 1")
        self._environment = Environment(env)
        self._timings = timings or Timings()
        self._log = RunPodLogger()
        self._checks = checks
        self._signals = signals
        self._lock = threading.RLock()
        self._timers = Timers(lambda error: self._log.error(f"A timer failed: {error}"))
        self._stop_asked = threading.Event()
        #: The first thread has left the executor.
        self._left = threading.Event()
        self._signalled = False
        self._exit_code = 0
        self._source = self._create_source(channel, first)
        self.jobs = RunningJobs(
            lock=self._lock,
            timers=self._timers,
            log=self._log,
            cancel_grace_seconds=self._timings.cancel_grace,
            on_room=self._source.room_grew,
            on_less_room=self._source.room_shrank,
            on_change=self._changed,
        )
        most = 1 if one_at_a_time and not is_async(handler) else None
        self.jobs.set_concurrency(concurrency if most is None else min(most, concurrency))
        self._modifier = (
            None
            if concurrency_modifier is None
            else ConcurrencyModifier(
                concurrency_modifier, self.jobs, self._timings.concurrency, self._log, most
            )
        )
        self._ping_process = self._create_ping_process()
        self._executor = self._create_executor(
            handler, format or ResultFormat(worker_id=self._environment.worker_id)
        )

    def run(self) -> int:
        """Returns the code for the process to end with."""
        global active
        self._log.info(f"Worker {self._environment.worker_id} starts, berth-worker {__version__}.")
        if self._signals:
            Signals(self._on_signal, self._log)
        try:
            self._checks(self._log)
        except UnhealthyError as error:
            self._end_unhealthy(error)
        if self._modifier is not None:
            self._modifier.ask()
        active = self
        try:
            ending = threading.Thread(target=self._serve, name="berth-lifecycle", daemon=True)
            ending.start()
            self._executor.run_until_closed()
            self._left.set()
            ending.join()
        finally:
            active = None
        flush_background_log()
        return self._exit_code

    def stop(self) -> None:
        """Takes no more jobs; those that it has are finished."""
        if not self._stop_asked.is_set():
            self._stop_asked.set()

    def progress(self, job_id: str, value: Any) -> bool:
        """Shows a value as the output of a running job. False where there is no such job."""
        run = self.jobs.find(job_id)
        if run is None:
            return False
        run.context.progress(value)
        return True

    def _serve(self) -> None:
        use_background_log()
        if self._ping_process is not None:
            self._ping_process.begin()
        if not self._stop_asked.is_set():
            if self._modifier is not None:
                self._modifier.follow()
            self._source.open(self.jobs)
            self._stop_asked.wait()
            self._log.info("The worker stops. It takes no more jobs and finishes those that it has.")
            self._drain()
        if self._ping_process is not None:
            self._ping_process.stop()
        self._log.info("The worker has stopped.")
        self._end()

    def _drain(self) -> None:
        self.jobs.close()
        self._source.leave()
        while True:
            self.jobs.wait_idle()
            self._source.close()
            if self.jobs.idle:
                break
        if self._modifier is not None:
            self._modifier.stop()

    def _end(self) -> None:
        """A cancelled handler that never ends must not keep the process."""
        self._executor.close()
        if not self._left.wait(self._timings.closing) and self._executor.is_stuck:
            _exit_now(self._exit_code)

    def _changed(self) -> None:
        if self._ping_process is not None:
            self._ping_process.changed()

    def _held(self) -> list[str]:
        return list(dict.fromkeys([*self.jobs.held(), *self._source.unacknowledged()]))

    def _on_signal(self, number: int) -> None:
        if not self._signalled:
            self._signalled = True
            self.stop()
            return
        self.jobs.stop_all()
        threading.Timer(self._timings.abort, lambda: _exit_now(128 + number)).start()

    def _on_exit(self, code: int) -> None:
        self._exit_code = code
        self.stop()

    def _end_unhealthy(self, error: UnhealthyError) -> None:
        """Ends at once: threads that the handler's import started could keep the process."""
        self._log.error(f"This worker is unhealthy: {error}")
        report = threading.Thread(
            target=self._source.report_unhealthy, args=(error.check, error.reason), daemon=True
        )
        report.start()
        report.join(self._timings.unhealthy_report)
        _exit_now(1)

    def _create_source(self, channel: str, first: Opened | None) -> JobSource:
        url = self._environment.urls.channel
        if channel == "public" or (url is None and channel == "auto"):
            from .public.source import PublicSource

            return PublicSource(self._environment, self._log, self._timings)
        if url is None:
            raise ValueError(
                'channel "fast" needs a URL with /job-take/ in RUNPOD_WEBHOOK_GET_JOB, '
                "from which that of the channel is made"
            )
        from .auto_source import AutoSource

        return AutoSource(
            self._environment,
            url,
            log=self._log,
            timings=self._timings,
            lock=self._lock,
            timers=self._timers,
            channel_only=channel == "fast",
            first=first,
        )

    def _create_executor(self, handler: Callable[[Any], Any], format: ResultFormat) -> AnyExecutor:
        completion = Completion(self.jobs, format, self._log, on_refresh=self.stop, on_exit=self._on_exit)
        executor: AnyExecutor
        if is_async(handler):
            from .loop_executor import LoopExecutor

            executor = LoopExecutor(handler, self.jobs, completion, self._lock)
        else:
            from .thread_executor import ThreadExecutor

            executor = ThreadExecutor(handler, self.jobs, completion, self._lock)
        self.jobs.executor = executor
        return executor

    def _create_ping_process(self) -> PingProcess | None:
        urls = self._environment.urls
        if not urls.has_ping:
            return None
        return PingProcess(
            url=lambda: urls.ping(self._held(), MOST_PINGED, partial=True),
            api_key=self._environment.api_key,
            ping_seconds=self._environment.ping_seconds,
            log=self._log,
        )


def _exit_now(code: int) -> None:
    flush_background_log()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
    os._exit(code)
