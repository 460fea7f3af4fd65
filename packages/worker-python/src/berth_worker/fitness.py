"""Checks that run once before the first job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .log import RunPodLogger

LONGEST_REASON = 256

Check = TypeVar("Check", bound="Callable[[], Any]")

_checks: list[Callable[[], Any]] = []


class UnhealthyError(Exception):
    """A worker that must not take jobs."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(f"the fitness check {check} failed: {reason}")
        self.check = check
        self.reason = reason


def register_fitness_check(check: Check) -> Check:
    """
    Decorator: the function, which may be async, runs before the first job. If it raises, the worker is
    reported unhealthy and ends with code 1.
    """
    _checks.append(check)
    return check


def clear_fitness_checks() -> None:
    _checks.clear()


def run_fitness_checks(log: RunPodLogger) -> None:
    """One after the other. The first that raises ends it with UnhealthyError."""
    for number, check in enumerate(_checks, 1):
        try:
            value = check()
            if hasattr(value, "__await__"):
                _wait(value)
        except Exception as error:
            name = getattr(check, "__name__", f"check {number}")
            raise UnhealthyError(name, f"{type(error).__name__}: {error}"[:LONGEST_REASON]) from error
    if _checks:
        log.info(f"All fitness checks passed ({len(_checks)}).")


def _wait(awaitable: Any) -> None:
    import asyncio

    async def wait() -> None:
        await awaitable

    asyncio.run(wait())
