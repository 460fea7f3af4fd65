"""What kind of handler a function is."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def _plain(handler: Any) -> Any:
    """The function behind a partial or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not inspect.isroutine(handler) and not inspect.isclass(handler) and hasattr(handler, "__call__"):
        return handler.__call__
    return handler


def is_async(handler: Any) -> bool:
    """Coroutine functions and async generator functions run on an event loop, all others in threads."""
    plain = _plain(handler)
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)


def is_generator(handler: Any) -> bool:
    """Generator functions, sync and async, stream what they yield."""
    plain = _plain(handler)
    return inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain)
