"""Timings of parts of a handler, which `--rp_debugger` adds to each output."""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from ...version import __version__

__all__ = ["Checkpoints", "FunctionTimer", "LineTimer", "clear_debugger_output", "get_debugger_output"]


class Checkpoints:
    """Named times, one list for the whole process."""

    _instance: Checkpoints | None = None
    checkpoints: list[dict[str, Any]]
    name_lookup: dict[str, int]

    def __new__(cls) -> Checkpoints:
        if Checkpoints._instance is None:
            Checkpoints._instance = object.__new__(cls)
            Checkpoints._instance.clear()
        return Checkpoints._instance

    def add(self, name: str) -> None:
        if name in self.name_lookup:
            raise KeyError(f'Checkpoint name "{name}" already exists.')
        self.name_lookup[name] = len(self.checkpoints)
        self.checkpoints.append({"name": name})

    def start(self, name: str) -> None:
        checkpoint = self._find(name)
        checkpoint["start"] = time.perf_counter()
        checkpoint["start_utc"] = _now()

    def stop(self, name: str) -> None:
        checkpoint = self._find(name)
        if "start" not in checkpoint:
            raise KeyError("Checkpoint has not been started.")
        checkpoint["end"] = time.perf_counter()
        checkpoint["stop_utc"] = _now()

    def get_checkpoints(self) -> list[dict[str, Any]]:
        """Those that were started and stopped."""
        ended = [
            checkpoint for checkpoint in self.checkpoints if "start" in checkpoint and "end" in checkpoint
        ]
        return [
            {
                "name": checkpoint["name"],
                "start_utc": checkpoint["start_utc"],
                "stop_utc": checkpoint["stop_utc"],
                "duration_ms": (checkpoint["end"] - checkpoint["start"]) * 1000,
            }
            for checkpoint in ended
        ]

    def clear(self) -> None:
        self.checkpoints = []
        self.name_lookup = {}

    def _find(self, name: str) -> dict[str, Any]:
        if name not in self.name_lookup:
            raise KeyError(f"Checkpoint name '{name}' does not exist.")
        return self.checkpoints[self.name_lookup[name]]


class LineTimer:
    """`with LineTimer("load"): ...`"""

    def __init__(self, name: str) -> None:
        self.checkpoints = Checkpoints()
        self.name = name
        self.checkpoints.add(name)

    def __enter__(self) -> None:
        self.checkpoints.start(self.name)

    def __exit__(self, *error: object) -> None:
        self.checkpoints.stop(self.name)


class FunctionTimer:
    """Decorator: times each call of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        checkpoints = Checkpoints()
        name = self.function.__name__
        checkpoints.add(name)
        checkpoints.start(name)
        try:
            return self.function(*args, **kwargs)
        finally:
            if name in checkpoints.name_lookup:
                checkpoints.stop(name)


def get_debugger_output() -> dict[str, Any]:
    """The timings since the last call, and what they were measured on."""
    timestamps = Checkpoints().get_checkpoints()
    clear_debugger_output()
    return {
        "system_info": {
            "os": f"{platform.system()} {platform.release()}",
            "processor": platform.processor() or platform.machine(),
            "python_version": platform.python_version(),
            "runpod": __version__,
        },
        "timestamps": timestamps,
    }


def clear_debugger_output() -> None:
    Checkpoints().clear()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat() + "Z"
