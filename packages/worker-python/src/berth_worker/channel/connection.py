"""One open connection of the channel. Lines that are sent in quick succession leave in one write."""

from __future__ import annotations

import selectors
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

#: Lines are joined up to about so many bytes; a longer one goes alone.
MOST_AT_ONCE = 4 * 1024 * 1024
READ_BYTES = 256 * 1024
#: A line that comes this long after the last write is written by the thread that sends it. Waking the other
#: thread for each line takes the interpreter lock away from the handler: a language model lost 10 % of its
#: tokens a second to that.
QUIET_SECONDS = 0.002
#: A longer line is left to the other thread: writing it would hold the lock for long.
QUIET_BYTES = 64 * 1024


class LineReader:
    """Cuts what comes in pieces, which may end anywhere, into lines."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def push(self, piece: bytes) -> list[bytes]:
        lines = piece.split(b"\n")
        if len(lines) == 1:
            self._begun.append(piece)
            return []
        if self._begun:
            self._begun.append(lines[0])
            lines[0] = b"".join(self._begun)
        rest = lines.pop()
        self._begun = [rest] if rest else []
        return lines


class Connection:
    """
    The serving thread is the one in `serve`. Other threads call `send` and `wake` with the lock held, and
    `end`.

    Who may write: while `_writing` is set, the serving thread holds text that it writes without the lock, and
    nobody else writes. While it is not, a thread with the lock may write, if no line waits.
    """

    def __init__(self, sock: socket.socket, head: bytes, lock: threading.RLock) -> None:
        self._socket = sock
        self._head = head
        self._lock = lock
        self._lines: list[bytes] = []
        self._awake = False
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out, sock):
            end.setblocking(False)
        self._unsent = memoryview(b"")
        #: The serving thread holds text that it has not written yet.
        self._writing = False
        #: The first of the lines is the rest of one that was begun.
        self._line_begun = False
        self._written_at = 0.0
        self._selector = selectors.DefaultSelector()
        self._reader = LineReader()
        self._closed = False
        self._is_ssl = hasattr(sock, "pending")
        #: The last write is not through: what comes meanwhile waits.
        self.congested = False
        #: Nothing more is sent. What still comes is read until this moment.
        self.ending = False
        self._closing_until = 0.0
        self._half_closed = False
        self.opened_at = time.monotonic()
        self.heard_at = self.opened_at
        self.error: str | None = None

    def send(self, line: bytes) -> None:
        """A line that comes alone is written at once. The serving thread joins and writes all others."""
        if self._is_quiet(len(line)):
            unsent = self._send_now(line)
            if unsent is None:
                return
            line = unsent
        self._lines.append(line)
        self.wake()

    def _is_quiet(self, size: int) -> bool:
        """A TLS socket is used by the serving thread only: it cannot be written while it is read."""
        if self._is_ssl or self._writing or self._lines or self._awake or self.ending or self._closed:
            return False
        return size <= QUIET_BYTES and time.monotonic() - self._written_at >= QUIET_SECONDS

    def _send_now(self, line: bytes) -> bytes | None:
        """Returns what the system did not take, which may be empty except for the end of the line."""
        self._written_at = time.monotonic()
        try:
            sent = self._socket.send(line + b"\n")
        except OSError:
            # The buffer is full, or the connection is broken: the serving thread finds out.
            return line
        if sent > len(line):
            return None
        self._line_begun = sent > 0
        return line[sent:]

    def wake(self) -> None:
        """Something may have to be written."""
        if self._awake or self._closed:
            return
        self._awake = True
        try:
            self._wake_out.send(b"w")
        except OSError:
            pass

    def end(self, closing: float) -> None:
        """
        Writes what waits and says that nothing more comes. The other side then closes, or is not waited for
        any longer.
        """
        with self._lock:
            if self.ending or self._closed:
                return
            self.ending = True
            self._closing_until = time.monotonic() + closing
            self.wake()

    def serve(
        self,
        *,
        on_lines: Callable[[list[bytes]], object],
        before_write: Callable[[], object],
        on_drained: Callable[[], object],
        on_beat: Callable[[], bool],
        beat_seconds: float,
    ) -> list[bytes]:
        """
        Reads and writes until the connection is gone. Returns the lines that were never written. `on_beat`
        answers False to end it.
        """
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        next_beat = time.monotonic() + beat_seconds
        try:
            if self._head:
                on_lines(self._reader.push(self._head))
            while True:
                self._write(before_write, on_drained)
                now = time.monotonic()
                if self.ending and now >= self._closing_until:
                    break
                if now >= next_beat:
                    next_beat = now + beat_seconds
                    if not on_beat():
                        self.error = "the server does not answer"
                        break
                    continue
                until = min(next_beat, self._closing_until) if self.ending else next_beat
                for key, _ in self._selector.select(until - now):
                    if key.fileobj is self._wake_in:
                        self._wake_in.recv(4096)
                    elif not self._read(on_lines):
                        return self._close()
        except OSError as error:
            self.error = str(error)
        except Exception as error:
            # Whatever a line of the server caused here, another connection is opened, and jobs go on.
            self.error = f"{type(error).__name__}: {error}"
        return self._close()

    def _read(self, on_lines: Callable[[list[bytes]], object]) -> bool:
        """False at the end of what the server sends."""
        while True:
            try:
                piece = self._socket.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError as error:
                if self._is_ssl and type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError"):
                    return True
                raise
            if not piece:
                return False
            self.heard_at = time.monotonic()
            lines = self._reader.push(piece)
            if lines:
                on_lines(lines)
            if not self._is_ssl:
                return True

    def _write(self, before_write: Callable[[], object], on_drained: Callable[[], object]) -> None:
        while not self._half_closed:
            if not self._unsent:
                with self._lock:
                    # What `before_write` sends joins the lines that wait, and need not wake this thread.
                    self._awake = True
                    if not self.ending:
                        before_write()
                    self._awake = False
                    self._unsent = memoryview(self._next_text())
                    self._writing = len(self._unsent) > 0
                    # Read together with the lines: one that is sent before `end` is written before it.
                    nothing_follows = self.ending
                if not self._writing:
                    if nothing_follows:
                        self._half_close()
                    break
                self._written_at = time.monotonic()
            if not self._send_some():
                return
        if self.congested:
            self.congested = False
            self._selector.modify(self._socket, selectors.EVENT_READ)
            with self._lock:
                on_drained()

    def _half_close(self) -> None:
        self._half_closed = True
        # A TLS connection cannot be half closed: the server sees the end when this side is closed.
        if self._is_ssl:
            self._closing_until = 0.0
        else:
            self._socket.shutdown(socket.SHUT_WR)

    def _send_some(self) -> bool:
        """False where the system takes no more for now."""
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            if not (self._is_ssl and type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")):
                raise
            sent = 0
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            return True
        if not self.congested:
            self.congested = True
            self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        return False

    def _next_text(self) -> bytes:
        lines = self._lines
        if not lines:
            return b""
        self._line_begun = False
        size = 0
        for count, line in enumerate(lines):
            size += len(line)
            if size > MOST_AT_ONCE and count > 0:
                self._lines = lines[count:]
                lines = lines[:count]
                break
        else:
            self._lines = []
        lines.append(b"")
        return b"\n".join(lines)

    def _close(self) -> list[bytes]:
        with self._lock:
            self._closed = True
            if self._line_begun:
                del self._lines[0]
        self._selector.close()
        for end in (self._socket, self._wake_in, self._wake_out):
            end.close()
        return self._lines
