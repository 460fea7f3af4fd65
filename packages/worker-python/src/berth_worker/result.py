"""What is sent as the result of a job, in the shapes of the public worker SDK."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from .json_text import UnsendableOutput, json_bytes, output_bytes
from .version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable


class Result(NamedTuple):
    #: JSON with `output` or `error`, or both.
    body: bytes
    failed: bool
    #: The worker asks to be replaced.
    refresh: bool


class ResultFormat:
    """Makes results. The rules hold for every job of a worker."""

    def __init__(
        self,
        *,
        refresh_worker: bool = False,
        aggregate: bool = False,
        worker_id: str | None = None,
        hostname: str | None = None,
        version_field: tuple[str, str] = ("berth_version", __version__),
        debugger: Callable[[], dict[str, Any]] | None = None,
        after_job: Callable[[], object] | None = None,
        yielded_errors: bool = True,
    ) -> None:
        self.refresh_worker = refresh_worker
        self.aggregate = aggregate
        self._worker_id = worker_id or os.environ.get("RUNPOD_POD_ID", "unknown")
        self._hostname = hostname or os.environ.get("RUNPOD_POD_HOSTNAME", "unknown")
        self._version_field = version_field
        self._debugger = debugger
        #: Called after every job.
        self.after_job = after_job
        #: A stream that yields a dict with `error` ends with it.
        self.yielded_errors = yielded_errors

    def returned(self, value: Any) -> Result:
        """
        In a dict, `error` makes the job fail and `refresh_worker` asks for a new worker; both are taken out,
        the rest is the output.
        """
        try:
            if type(value) is not dict and not isinstance(value, dict) and self._debugger is None:
                return self._body({"output": value}, self.refresh_worker)
            if not isinstance(value, dict):
                return self._body({"output": self._debugged(value)}, self.refresh_worker)
            if "error" not in value and "refresh_worker" not in value and self._debugger is None:
                return self._body({"output": value} if value else {}, self.refresh_worker)
            output = dict(value)
            error = output.pop("error", None)
            refresh = bool(output.pop("refresh_worker", None)) or self.refresh_worker
            output = self._debugged(output)
            body: dict[str, Any] = {}
            if output:
                body["output"] = output
            if error:
                body["error"] = error
            return self._body(body, refresh)
        except UnsendableOutput as unsendable:
            return self.raised(unsendable)

    def streamed(self, chunks: list[bytes]) -> Result:
        """
        The result of a generator that came to its end. The chunks are JSON, and empty unless they are
        aggregated.
        """
        output = b"[" + b",".join(chunks) + b"]"
        stop = b',"stopPod":true' if self.refresh_worker else b""
        return Result(b'{"output":' + output + stop + b"}", False, self.refresh_worker)

    def yielded_error(self, error: Any) -> Result:
        """The result of a generator that yielded an error: its text, as the public SDK sends it."""
        return self._body({"error": str(error)}, self.refresh_worker)

    def raised(self, error: BaseException, refresh: bool = False) -> Result:
        """The result of a function that raised: JSON text inside of `error`."""
        name, version = self._version_field
        report = {
            "error_type": str(type(error)),
            "error_message": _message(error),
            "error_traceback": _traceback(error),
            "hostname": self._hostname,
            "worker_id": self._worker_id,
            name: version,
        }
        return self._body({"error": json_bytes(report).decode()}, refresh or self.refresh_worker)

    def generator_raised(self, error: BaseException, refresh: bool = False) -> Result:
        """The result of a generator that raised: plain text. The chunks before it stay."""
        return self._body(
            {"error": f"handler: {_message(error)} \ntraceback: {_traceback(error)}"},
            refresh or self.refresh_worker,
        )

    def _body(self, body: dict[str, Any], refresh: bool) -> Result:
        if refresh:
            body["stopPod"] = True
        return Result(output_bytes("the output", body), "error" in body, refresh)

    def _debugged(self, output: Any) -> Any:
        if self._debugger is None or not isinstance(output, dict):
            return output
        return {**output, "rp_debugger": self._debugger()}


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"the message of a {type(error).__name__} cannot be read"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:
        return "the traceback cannot be read"
