"""The handlers that every side runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def noop(job: dict[str, Any]) -> dict[str, bool]:
    return {"ok": True}


def numbers(job: dict[str, Any]) -> Iterator[int]:
    yield from range(job["input"]["count"])
