"""
What kind of handler a function is, and what kind of value it returned. Without `inspect`, which takes 10 ms
to import.
"""

from __future__ import annotations

from functools import partial
from types import AsyncGeneratorType, FunctionType, GeneratorType
from typing import Any

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def is_async(handler: Any) -> bool:
    """Coroutine functions and async generator functions run on an event loop, all others in threads."""
    return bool(_flags(handler) & (_COROUTINE | _ASYNC_GENERATOR))


def is_generator(handler: Any) -> bool:
    """Generator functions, sync and async, stream what they yield."""
    return bool(_flags(handler) & (_GENERATOR | _ASYNC_GENERATOR))


def is_awaitable(value: Any) -> bool:
    return hasattr(type(value), "__await__")


def is_stream(value: Any) -> bool:
    return isinstance(value, GeneratorType)


def is_async_stream(value: Any) -> bool:
    return isinstance(value, AsyncGeneratorType)


def _flags(handler: Any) -> int:
    """The flags of the function behind a partial, a method or an object that can be called."""
    while isinstance(handler, partial):
        handler = handler.func
    handler = getattr(handler, "__func__", handler)
    # Set by `inspect.markcoroutinefunction` and by asyncio's decorators.
    if (
        getattr(handler, "_is_coroutine_mark", None) is not None
        or getattr(handler, "_is_coroutine", None) is not None
    ):
        return _COROUTINE
    if not isinstance(handler, FunctionType):
        handler = (
            getattr(type(handler).__call__, "__func__", type(handler).__call__)
            if callable(handler) and not isinstance(handler, type)
            else None
        )
    code = getattr(handler, "__code__", None)
    return int(code.co_flags) if code is not None else 0
