"""Runs coroutine functions and async generators, each job as a task of one event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .handler_kind import is_async_stream, is_awaitable, is_stream
from .job_context import current
from .log import batch_id
from .stream import Stream

if TYPE_CHECKING:
    import threading
    from collections.abc import AsyncIterator, Callable

    from .completion import Completion
    from .one_shot_event import OneShotEvent
    from .result import Result
    from .running_jobs import Run, RunningJobs


class LoopExecutor:
    """
    The event loop belongs to the handlers alone: while one of them blocks it, other threads talk to the
    server.
    """

    def __init__(
        self, handler: Callable[[Any], Any], jobs: RunningJobs, completion: Completion, lock: threading.RLock
    ) -> None:
        self._handler = handler
        self._jobs = jobs
        self._completion = completion
        self._lock = lock
        self._loop = asyncio.new_event_loop()
        self._scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        if self._scheduled or not self._jobs.can_start():
            return
        self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._begin)
        except RuntimeError:
            pass  # The loop is closed: the worker has stopped.

    def run_until_closed(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def close(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._loop.stop)
        except RuntimeError:
            pass

    @property
    def is_stuck(self) -> bool:
        """The event loop has not ended: a handler blocks it."""
        return True

    def _begin(self) -> None:
        with self._lock:
            self._scheduled = False
            runs = [self._jobs.begin() for _ in range(self._jobs.can_start())]
        for run in runs:
            task = self._loop.create_task(self._run(run))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, run: Run) -> None:
        task = asyncio.current_task()
        assert task is not None
        run.on_cancel = lambda: self._loop.call_soon_threadsafe(self._cancel, run, task)
        current.set(run.context)
        batch_id.set(run.job.get("batchId"))
        self._completion.started(run)
        try:
            if run.context.cancelled:
                return
            result, streamed = await self._result_of(run)
            event = self._completion.send(run, result, streamed)
            if event is not None:
                await self._until_set(event)
        except asyncio.CancelledError:
            pass  # Cancelled once more while it ended.
        finally:
            self._jobs.ended(run)

    def _cancel(self, run: Run, task: asyncio.Task[None]) -> None:
        if not run.context.over:
            task.cancel()

    async def _result_of(self, run: Run) -> tuple[Result, bool]:
        try:
            value = self._handler(run.job)
            if is_awaitable(value):
                value = await value
        except BaseException as error:
            return self._completion.raised(error, False), False
        if is_async_stream(value):
            return await self._stream(run, value), True
        if is_stream(value):
            return await self._stream(run, _iterate(value)), True
        return self._completion.format.returned(value), False

    async def _stream(self, run: Run, chunks: AsyncIterator[Any]) -> Result:
        stream = Stream(run, self._completion.format)
        try:
            async for value in chunks:
                if stream.ends:
                    break
                event = stream.send(value)
                if event is not None:
                    await self._until_set(event)
                if stream.ends:
                    break
            result = stream.finish()
        except BaseException as error:
            return self._completion.raised(error, True)
        try:
            await chunks.aclose()  # type: ignore[attr-defined]
        except BaseException:
            pass
        return result

    async def _until_set(self, event: OneShotEvent) -> None:
        future: asyncio.Future[None] = self._loop.create_future()

        def done() -> None:
            if not future.done():
                future.set_result(None)

        def from_any_thread() -> None:
            try:
                self._loop.call_soon_threadsafe(done)
            except RuntimeError:
                pass

        event.on_set(from_any_thread)
        await future


async def _iterate(values: Any) -> AsyncIterator[Any]:
    try:
        for value in values:
            yield value
            await asyncio.sleep(0)
    finally:
        values.close()
