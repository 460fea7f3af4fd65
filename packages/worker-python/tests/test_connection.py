"""The connection of the channel: who writes which line, in which order, and what is left when it ends."""

from __future__ import annotations

import random
import socket
import sys
import threading
import unittest
from typing import Any

import helpers  # noqa: F401
from berth_worker.channel.connection import QUIET_BYTES, QUIET_SECONDS, Connection


class PartialSocket:
    """A socket that takes as much of each write as `takes` says; 0 means that its buffer is full."""

    def __init__(self, sock: socket.socket, takes: Any) -> None:
        self._socket = sock
        self._takes = takes

    def send(self, text: bytes) -> int:
        most = self._takes(len(text))
        if most == 0:
            raise BlockingIOError
        return self._socket.send(text[:most])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class HookedLock:
    """A lock that calls `on_release`, once, right after it was released."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.on_release: Any = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        hook, self.on_release = self.on_release, None
        if hook is not None:
            hook()


class Sending(unittest.TestCase):
    def setUp(self) -> None:
        self.lock: Any = threading.RLock()
        self.server, self.client = socket.socketpair()
        self.server.settimeout(10)
        self.addCleanup(self.server.close)
        self.addCleanup(self.client.close)

    def connection(self, takes: Any = None) -> Connection:
        sock: Any = self.client if takes is None else PartialSocket(self.client, takes)
        return Connection(sock, b"", self.lock)

    def serve(self, connection: Connection) -> tuple[threading.Thread, list[bytes]]:
        """The thread that serves, and what it returned: the lines that were never written."""
        unwritten: list[bytes] = []

        def serve() -> None:
            unwritten.extend(
                connection.serve(
                    on_lines=lambda lines: None,
                    before_write=lambda: None,
                    on_drained=lambda: None,
                    on_beat=lambda: True,
                    beat_seconds=1,
                )
            )

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return thread, unwritten

    def received(self) -> bytes:
        """All that comes until this side is told that nothing more comes."""
        pieces = []
        while piece := self.server.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)

    def test_a_line_that_comes_alone_is_written_at_once(self) -> None:
        connection = self.connection()
        with self.lock:
            connection.send(b"one")
        # Nobody serves the connection, so only the sender can have written it.
        self.assertEqual(self.server.recv(100), b"one\n")

    def test_a_line_right_after_another_waits_for_the_serving_thread(self) -> None:
        connection = self.connection()
        connection._written_at = float("inf")
        with self.lock:
            for line in (b"one", b"two", b"three"):
                connection.send(line)
        self.server.setblocking(False)
        with self.assertRaises(BlockingIOError):
            self.server.recv(100)
        self.server.settimeout(10)
        self.serve(connection)
        self.assertEqual(self.server.recv(100), b"one\ntwo\nthree\n")

    def test_a_line_does_not_overtake_those_that_wait(self) -> None:
        connection = self.connection()
        connection._written_at = float("inf")
        with self.lock:
            connection.send(b"one")
            # The serving thread has not come to it for a while.
            connection._written_at = 0.0
            connection.send(b"two")
        self.serve(connection)
        connection.end(5)
        self.assertEqual(self.received(), b"one\ntwo\n")

    def test_long_lines_and_tls_are_left_to_the_serving_thread(self) -> None:
        for long, tls in ((True, False), (False, True)):
            server, client = socket.socketpair()
            connection = Connection(client, b"", self.lock)
            connection._is_ssl = tls
            with self.lock:
                connection.send(b"x" * (QUIET_BYTES + 1 if long else 1))
            server.setblocking(False)
            with self.assertRaises(BlockingIOError):
                server.recv(100)
            server.close()
            client.close()

    def test_the_rest_of_a_line_comes_before_the_next(self) -> None:
        for first in range(6):
            # Of the first write the system takes `first` bytes: "12345" has six with its end.
            amounts = iter([first])
            self.setUp()
            connection = self.connection(lambda size: next(amounts, size))
            with self.lock:
                connection.send(b"12345")
                connection.send(b"next")
            thread, unwritten = self.serve(connection)
            connection.end(5)
            self.assertEqual(self.received(), b"12345\nnext\n", first)
            self.server.close()
            thread.join(10)
            self.assertEqual(unwritten, [])

    def test_what_was_begun_is_not_among_the_unwritten_lines(self) -> None:
        amounts = iter([3])
        connection = self.connection(lambda size: next(amounts, 0))
        with self.lock:
            connection.send(b"S a 1 body")
            connection.send(b"S a 1 next")
        self.assertEqual(connection._close(), [b"S a 1 next"])

    def test_a_broken_connection_keeps_the_line(self) -> None:
        self.server.close()
        connection = self.connection()
        with self.lock:
            connection.send(b"one")
        self.assertEqual(connection._close(), [b"one"])
        with self.lock:
            connection.send(b"after the end")

    def test_a_line_sent_just_before_the_end_is_written(self) -> None:
        self.lock = HookedLock()
        connection = self.connection()
        # Not quiet: the line waits for the serving thread.
        connection._written_at = float("inf")

        def leave() -> None:
            with self.lock:
                connection.send(b"Q")
            connection.end(5)

        # The serving thread has seen that there is nothing to write, and goes on without the lock.
        self.lock.on_release = leave
        thread, unwritten = self.serve(connection)
        self.assertEqual(self.received(), b"Q\n")
        self.server.close()
        thread.join(10)
        self.assertEqual(unwritten, [])

    def test_threads_that_send_at_the_same_time(self) -> None:
        """Every line arrives whole, once, and in the order of its thread, however writes are cut."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, interval)
        chance = random.Random(7)
        connection = self.connection(lambda size: chance.choice((0, 1, size // 2, size, size, size)))
        thread, unwritten = self.serve(connection)
        count = 300

        def send_all(name: int) -> None:
            pause = threading.Event()
            wait = random.Random(name)
            for number in range(count):
                with self.lock:
                    connection.send(b"%d %d %b" % (name, number, b"x" * wait.choice((0, 10, 3000))))
                if wait.random() < 0.3:
                    pause.wait(QUIET_SECONDS * 1.5)

        senders = [threading.Thread(target=send_all, args=(name,)) for name in range(4)]
        text: list[bytes] = []
        reader = threading.Thread(target=lambda: text.append(self.received()))
        for each in (*senders, reader):
            each.start()
        for sender in senders:
            sender.join(60)
        connection.end(30)
        reader.join(60)
        self.server.close()
        thread.join(10)
        self.assertEqual(unwritten, [])
        lines = text[0].split(b"\n")
        self.assertEqual(lines.pop(), b"")
        seen: dict[bytes, list[int]] = {}
        for line in lines:
            name, number, body = line.split(b" ")
            self.assertEqual(body.strip(b"x"), b"")
            seen.setdefault(name, []).append(int(number))
        self.assertEqual(seen, {b"%d" % name: list(range(count)) for name in range(4)})

    def test_a_defect_while_reading_ends_the_connection_only(self) -> None:
        connection = self.connection()

        def fail(lines: list[bytes]) -> None:
            raise ValueError("no such line")

        self.server.sendall(b"A\n")
        connection.serve(
            on_lines=fail,
            before_write=lambda: None,
            on_drained=lambda: None,
            on_beat=lambda: True,
            beat_seconds=1,
        )
        self.assertEqual(connection.error, "ValueError: no such line")
        self.assertEqual(self.server.recv(1), b"")


if __name__ == "__main__":
    unittest.main()
