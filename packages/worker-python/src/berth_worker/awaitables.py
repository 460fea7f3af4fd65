"""An event loop in a thread of its own, for plain functions that return something to await."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator


class AwaitableRunner:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="berth-awaitables", daemon=True).start()

    def run(self, awaitable: Any) -> Any:
        """Blocks until the result is there."""

        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def iterate(self, values: AsyncGenerator[Any, Any]) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self.run(values.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self.run(values.aclose())
