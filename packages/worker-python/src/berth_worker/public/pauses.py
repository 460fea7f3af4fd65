"""How long to wait before the next request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..pace import Pace
    from .http_client import Answer

LONGEST_RETRY_AFTER = 60.0


def after_too_many(answer: Answer, pace: Pace) -> float:
    """After 429: what the server asks for, within reason."""
    return min(LONGEST_RETRY_AFTER, max(pace.too_many, answer.retry_after or 0.0))


def after_empty(asked_at: float, pace: Pace) -> float:
    """An empty answer that came at once is followed by a pause: a server that does not hold requests is not asked in a hot loop."""
    return pace.empty_answer if time.monotonic() - asked_at < pace.empty_answer else 0.0
