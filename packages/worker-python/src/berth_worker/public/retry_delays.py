"""How long to wait before the next request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..timings import Timings
    from .http_client import Answer

LONGEST_RETRY_AFTER = 60.0


def after_too_many(answer: Answer, timings: Timings) -> float:
    """After 429: what the server asks for, within reason."""
    return min(LONGEST_RETRY_AFTER, max(timings.too_many, answer.retry_after or 0.0))


def after_empty(asked_at: float, timings: Timings) -> float:
    """
    An empty answer that came at once is followed by a pause: a server that does not hold requests is not
    asked in a hot loop.
    """
    return timings.empty_answer if time.monotonic() - asked_at < timings.empty_answer else 0.0
