"""Jobs over Berth's channel. When the connection breaks, another one is opened, and running jobs go on."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from ..log import use_background_log
from ..timings import Backoff
from ..public.takes import is_job
from .connection import Connection
from .delivery import ChannelDelivery
from .outbox import Outbox
from .upgrade import Opened, Refused, Terms, Unreachable, upgrade

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..delivery import Consumer, Job
    from ..log import RunPodLogger
    from ..timings import Timings
    from ..public.delivery import PublicDelivery
    from .upgrade import Upgrade

#: After so many connections without a line from the server, the channel is taken to be blocked on the way.
MOST_MUTE = 3
CUT_OFF = Refused("its connections break before the server says anything", False)


class _Session:
    """An open connection and what is known of it."""

    def __init__(self, connection: Connection, terms: Terms) -> None:
        self.connection = connection
        self.terms = terms
        #: How many jobs the server may still send.
        self.credits = 0
        self.unanswered_since = float("inf")
        self.seems_dead = False
        self.heard = False
        #: The server stops: no more credits, and another connection as soon as the results are acknowledged.
        self.server_stops = False


class ChannelSource:
    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        ping_seconds: float,
        log: RunPodLogger,
        timings: Timings,
        lock: threading.RLock,
        elsewhere: Callable[[Job], PublicDelivery],
        on_open: Callable[[], object] | None = None,
        on_refused: Callable[[Refused], object] | None = None,
        first: Opened | None = None,
    ) -> None:
        """
        `on_refused`: the server does not offer the channel. Without it the channel is tried again and again.
        `first`: a connection that is open already.
        """
        self._url = url
        self._api_key = api_key
        self._ping_seconds = ping_seconds
        self._log = log
        self._timings = timings
        self._lock = lock
        self._on_open = on_open
        self._on_refused = on_refused
        self._first = first
        self._backoff = Backoff(timings)
        self._outbox = Outbox(
            lock=lock, elsewhere=elsewhere, on_stays=self._run_here, on_settled=self._settled
        )
        self._changed = threading.Condition(lock)
        #: Ends the waiting for a connection.
        self._enough = threading.Event()
        self._consumer: Consumer | None = None
        self._session: _Session | None = None
        self._thread: threading.Thread | None = None
        self._leaving = False
        #: So many connections in a row broke before the server sent a line.
        self._mute = 0

    def open(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.try_again()

    def try_again(self) -> None:
        """After a refusal."""
        self._thread = threading.Thread(target=self._stay_connected, name="berth-channel", daemon=True)
        self._thread.start()

    def room_shrank(self) -> None:
        with self._lock:
            if self._session is not None and self._session.terms.takes_back:
                self._session.credits = 0
                self._session.connection.send(b"N")

    def room_grew(self) -> None:
        with self._lock:
            if self._session is not None and self._wants_credits(self._session):
                self._session.connection.wake()

    def leave(self) -> None:
        with self._lock:
            if not self._leaving:
                self._leaving = True
                if self._session is not None:
                    self._session.connection.send(b"Q")

    def close(self) -> None:
        deadline = time.monotonic() + self._timings.last_result
        with self._changed:
            while not self._outbox.settled and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
        for job_id in self._outbox.close():
            self._log.error("The result was given up: it was not acknowledged", job_id)
        self._enough.set()
        # Jobs may be on their way until the server has read Q. They arrive before it closes its side.
        with self._lock:
            if self._session is not None:
                self._session.connection.end(self._timings.closing)
        if self._thread is not None:
            self._thread.join()

    def unacknowledged(self) -> list[str]:
        return self._outbox.unacknowledged()

    def report_unhealthy(self, check: str, reason: str) -> bool:
        """False where no channel is open."""
        outcome = upgrade(self._url, self._api_key, self._timings.unhealthy_report)
        if not isinstance(outcome, Opened):
            return False
        with outcome.socket as connection:
            try:
                connection.settimeout(self._timings.unhealthy_report)
                connection.sendall(b"U " + json.dumps({"check": check, "reason": reason}).encode() + b"\n")
                connection.shutdown(1)
                while connection.recv(4096):
                    pass
            except OSError:
                pass
        return True

    # The connection.

    def _stay_connected(self) -> None:
        use_background_log()
        while not self._enough.is_set():
            outcome: Upgrade = self._first or upgrade(self._url, self._api_key, self._timings.upgrade)
            self._first = None
            if isinstance(outcome, Opened):
                self._use(outcome)
            refusal = (
                outcome if isinstance(outcome, Refused) else CUT_OFF if self._mute >= MOST_MUTE else None
            )
            if self._enough.is_set():
                return
            if refusal is not None and self._on_refused is not None:
                self._mute = 0
                with self._lock:
                    self._outbox.move_elsewhere()
                self._on_refused(refusal)
                return
            if isinstance(outcome, (Refused, Unreachable)):
                self._log.warn(f"There is no connection to the server: {outcome.why}")
            self._enough.wait(self._backoff.next())

    def _use(self, opened: Opened) -> None:
        """Returns when the connection is gone."""
        connection = Connection(opened.socket, opened.head, self._lock)
        session = _Session(connection, opened.terms)
        if self._on_open is not None:
            self._on_open()
        with self._lock:
            self._session = session
            self._send_state(session)
        unwritten = connection.serve(
            on_lines=lambda lines: self._read(session, lines),
            before_write=lambda: self._before_write(session),
            on_drained=self._outbox.release_waiters_if_space,
            on_beat=lambda: self._beat(session),
            beat_seconds=self._ping_seconds,
        )
        with self._lock:
            self._session = None
            self._outbox.disconnect(unwritten)
        was_good = time.monotonic() - connection.opened_at >= self._timings.good_connection
        if was_good:
            self._backoff.reset()
        self._mute = 0 if was_good or session.heard else self._mute + 1
        if not connection.ending:
            self._log.warn(
                f"The connection to the server broke: {connection.error or 'the server closed it'}"
            )

    def _send_state(self, session: _Session) -> None:
        """A new connection begins with what this worker holds, and what was not sent or not acknowledged."""
        self._send_list(session)
        self._outbox.connect(session.connection, session.terms)
        if self._leaving:
            session.connection.send(b"Q")
        if self._enough.is_set():
            session.connection.end(self._timings.closing)

    def _before_write(self, session: _Session) -> None:
        self._outbox.before_write(session.connection)
        self._grant_credits(session)

    def _beat(self, session: _Session) -> bool:
        with self._lock:
            seemed_dead = session.seems_dead
            since = max(min(self._outbox.since, session.unanswered_since), session.connection.heard_at)
            session.seems_dead = since < time.monotonic() - self._timings.dead_connection
            # Twice: after a handler that blocked the interpreter, what the server sent may not be read yet.
            if seemed_dead and session.seems_dead:
                return False
            self._send_list(session)
            return True

    def _send_list(self, session: _Session) -> None:
        """The heartbeat: what this worker holds."""
        held = self._consumer.held() if self._consumer is not None else []
        ids = ",".join(dict.fromkeys([*held, *self.unacknowledged()]))
        session.connection.send(b"L " + ids.encode("utf-8", "replace"))
        if session.terms.answers:
            session.unanswered_since = min(session.unanswered_since, time.monotonic())

    def _wants_credits(self, session: _Session) -> int:
        """How many more jobs to ask for; 0 where it is not worth a request."""
        if self._leaving or session.server_stops or self._consumer is None:
            return 0
        takes_back = session.terms.takes_back
        more = self._consumer.room(takes_back) - session.credits
        return more if more > 0 and (not takes_back or more >= self._consumer.step()) else 0

    def _grant_credits(self, session: _Session) -> None:
        more = self._wants_credits(session)
        if more and self._consumer is not None:
            session.credits += more
            session.connection.send(b"T %d %d" % (more, self._consumer.concurrency))

    # Lines from the server.

    def _read(self, session: _Session, lines: list[bytes]) -> None:
        session.heard = True
        # Jobs are parsed without the lock: other threads go on meanwhile.
        read = [(line[:1], self._job_of(line) if line[:1] == b"J" else line[2:]) for line in lines]
        with self._lock:
            deliveries: list[ChannelDelivery] = []
            for kind, content in read:
                if isinstance(content, ChannelDelivery):
                    session.credits = max(0, session.credits - 1)
                    if self._outbox.expect(content):
                        deliveries.append(content)
                elif content is None:
                    session.credits = max(0, session.credits - 1)
                elif kind == b"A":
                    self._outbox.acknowledged(content)
                elif kind == b"K":
                    self._outbox.chunks_acknowledged(content)
                elif kind == b"H":
                    session.unanswered_since = float("inf")
                elif kind == b"X":
                    self._deliver(deliveries)
                    deliveries = []
                    if self._consumer is not None:
                        self._consumer.stop(content.decode("utf-8", "replace"))
                elif kind == b"G":
                    self._server_stops(session)
            self._deliver(deliveries)

    def _deliver(self, deliveries: list[ChannelDelivery]) -> None:
        if deliveries and self._consumer is not None:
            self._consumer.deliver(deliveries)

    def _job_of(self, line: bytes) -> ChannelDelivery | None:
        try:
            _, lease, text = line.split(b" ", 2)
            job = json.loads(text)
        except ValueError as error:
            self._log.error(f"The server sent a job that is not JSON: {error}")
            return None
        if not is_job(job):
            self._log.error("The server sent a job without an id that is text; it is left out.")
            return None
        return ChannelDelivery(job, lease, self._outbox)

    def _server_stops(self, session: _Session) -> None:
        self._log.info("The server stops; this worker looks for another, or for its return.")
        session.server_stops = True
        if self._outbox.settled:
            session.connection.end(self._timings.closing)
        else:
            threading.Timer(
                self._timings.closing, lambda: session.connection.end(self._timings.closing)
            ).start()

    def _settled(self) -> None:
        self._changed.notify_all()
        if self._session is not None and self._session.server_stops:
            self._session.connection.end(self._timings.closing)

    def _run_here(self, delivery: ChannelDelivery) -> None:
        """A job that could not be returned, unless it came here anew."""
        if self._consumer is not None and delivery.job["id"] not in self._consumer.held():
            self._consumer.deliver([delivery])
