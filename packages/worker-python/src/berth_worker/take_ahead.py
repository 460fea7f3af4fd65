"""How many jobs a worker takes beyond those that it can run now."""

from __future__ import annotations

#: Jobs that are taken ahead should begin within this time.
AHEAD_SECONDS = 0.02
MOST_AHEAD = 400
#: The longest of so many jobs says how long the next ones may take.
WINDOW = 32
_FOREVER = float("inf")


class TakeAhead:
    """
    Where jobs are shorter than the round trip to the server, a worker without any in stock would mostly wait.
    Where they are not, none are taken ahead: another worker may be free for them. One job that takes longer
    than those before ends it.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Jobs did not begin in time: what was measured no longer counts."""
        self._longest = _FOREVER
        self._longest_of_window = 0.0
        self._count = 0

    def ended(self, seconds: float) -> None:
        """A job has ended, so long after it began."""
        self._longest_of_window = max(self._longest_of_window, seconds)
        self._longest = max(self._longest, seconds)
        self._count += 1
        if self._count < WINDOW:
            return
        self._longest = self._longest_of_window
        self._longest_of_window = 0.0
        self._count = 0

    def jobs(self, concurrency: int) -> int:
        if self._longest == _FOREVER:
            return 0
        if self._longest <= 0:
            return MOST_AHEAD
        return int(min(MOST_AHEAD, concurrency * AHEAD_SECONDS / self._longest))
