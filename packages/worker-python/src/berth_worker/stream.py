"""What a streaming handler yields, on its way to chunks and a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .json_text import output_bytes

if TYPE_CHECKING:
    from .one_shot_event import OneShotEvent
    from .result import Result, ResultFormat
    from .running_jobs import Run


class Stream:
    """Sends the chunks of one run, until the generator ends, yields an error, or the job is cancelled."""

    def __init__(self, run: Run, format: ResultFormat) -> None:
        self._run = run
        self._format = format
        self._chunks: list[bytes] = []
        #: Set where the stream ends before the generator does.
        self.result: Result | None = None

    def send(self, value: Any) -> OneShotEvent | None:
        """An event asks to be waited for before the next chunk."""
        if isinstance(value, dict) and value.get("error") and self._format.yielded_errors:
            self.result = self._format.yielded_error(value["error"])
            return None
        text = output_bytes("a chunk", value)
        if self._format.aggregate:
            self._chunks.append(text)
        return self._run.delivery.chunk(b'{"output":' + text + b"}")

    @property
    def ends(self) -> bool:
        return self.result is not None or self._run.context.cancelled

    def finish(self) -> Result:
        return self.result or self._format.streamed(self._chunks)
