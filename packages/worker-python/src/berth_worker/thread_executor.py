"""Runs plain functions and generators, each job in one thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .handler_kind import is_async_stream, is_awaitable, is_stream
from .job_context import current
from .log import batch_id
from .stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .awaitables import AwaitableRunner
    from .completion import Completion
    from .result import Result
    from .running_jobs import Run, RunningJobs


class ThreadExecutor:
    """
    The thread that starts the worker is the first to run jobs, and with a concurrency of 1 the only one: what
    a handler made at import, such as a database connection, may belong to that thread. Others start as they
    are needed.
    """

    def __init__(
        self, handler: Callable[[Any], Any], jobs: RunningJobs, completion: Completion, lock: threading.RLock
    ) -> None:
        self._handler = handler
        self._jobs = jobs
        self._completion = completion
        self._can_begin = threading.Condition(lock)
        self._free_threads = 1
        self._closed = False
        self._awaitables: AwaitableRunner | None = None
        #: The run of the thread that started the worker.
        self.main_run: Run | None = None

    def wake(self) -> None:
        startable = self._jobs.can_start()
        for _ in range(startable - self._free_threads):
            self._free_threads += 1
            threading.Thread(target=self._work, name="berth-handler", daemon=True).start()
        if startable:
            self._can_begin.notify(startable)

    def run_until_closed(self) -> None:
        self._work(is_main=True)

    def close(self) -> None:
        with self._can_begin:
            self._closed = True
            self._can_begin.notify_all()

    @property
    def is_stuck(self) -> bool:
        """The first thread is in a cancelled handler that does not end."""
        run = self.main_run
        return run is not None and not self._jobs.has(run)

    def _work(self, is_main: bool = False) -> None:
        while True:
            run = self._next()
            if run is None:
                return
            if is_main:
                self.main_run = run
            try:
                self._run(run)
            finally:
                if is_main:
                    self.main_run = None
                with self._can_begin:
                    self._free_threads += 1
                    self._jobs.ended(run)

    def _next(self) -> Run | None:
        with self._can_begin:
            while not self._jobs.can_start():
                if self._closed:
                    return None
                self._can_begin.wait()
            self._free_threads -= 1
            return self._jobs.begin()

    def _run(self, run: Run) -> None:
        self._completion.started(run)
        token = current.set(run.context)
        batch_token = batch_id.set(run.job.get("batchId"))
        try:
            result, streamed = self._result_of(run)
        finally:
            current.reset(token)
            batch_id.reset(batch_token)
        event = self._completion.send(run, result, streamed)
        if event is not None:
            event.wait()

    def _result_of(self, run: Run) -> tuple[Result, bool]:
        try:
            value = self._handler(run.job)
            if is_awaitable(value):
                value = self._await(value)
        except BaseException as error:
            return self._completion.raised(error, False), False
        if is_stream(value):
            return self._stream(run, value), True
        if is_async_stream(value):
            return self._stream(run, self._runner().iterate(value)), True
        return self._completion.format.returned(value), False

    def _stream(self, run: Run, chunks: Iterator[Any]) -> Result:
        stream = Stream(run, self._completion.format)
        try:
            for value in chunks:
                if stream.ends:
                    break
                event = stream.send(value)
                if event is not None:
                    event.wait()
                if stream.ends:
                    break
            result = stream.finish()
        except BaseException as error:
            return self._completion.raised(error, True)
        # After the result is known, so that the clean-up of the generator cannot change it.
        _close(chunks)
        return result

    def _await(self, awaitable: Any) -> Any:
        return self._runner().run(awaitable)

    def _runner(self) -> AwaitableRunner:
        if self._awaitables is None:
            from .awaitables import AwaitableRunner

            self._awaitables = AwaitableRunner()
        return self._awaitables


def _close(chunks: Any) -> None:
    try:
        chunks.close()
    except BaseException:
        pass
