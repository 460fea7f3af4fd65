"""Plain HTTP over connections that are kept, for threads that wait for the answer."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from ..sockets import connect, request_target
from ..user_agent import user_agent

if TYPE_CHECKING:
    import http.client

    from .abort import Abort

MOST_REDIRECTS = 10
_KEEP_METHOD = (307, 308)
_BECOME_GET = (301, 302, 303)


class Answer(NamedTuple):
    status: int
    #: Of a body that is JSON, else None.
    json: Any
    retry_after: float | None


class UnsendableRequest(Exception):
    """The request could not even be made: the next try would end the same way."""


class NoLongerWanted(OSError):
    """The request was aborted."""


class _StaleConnection(Exception):
    """A kept connection that the server had closed: nothing of the request was read."""


class HttpClient:
    def __init__(self, api_key: str, begun_answer: float) -> None:
        self._api_key = api_key
        self._begun_answer = begun_answer
        self._idle: dict[tuple[str, str], list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def ask(
        self,
        url: str,
        *,
        silence: float,
        body: bytes | None = None,
        job_id: str | None = None,
        mark: str | None = None,
        abort: Abort | None = None,
    ) -> Answer:
        """
        With a body it is a POST. Raises OSError where there is no answer. Where a redirect cannot be
        followed, the answer is the one that says so.
        """
        to, key = url, self._api_key
        for redirects in range(MOST_REDIRECTS + 1):
            headers = _headers(body, job_id, mark, key)
            try:
                answer, location = self._send(to, body, headers, silence, abort, kept=True)
            except _StaleConnection:
                answer, location = self._send(to, body, headers, silence, abort, kept=False)
            redirect = _redirect(to, body is not None, answer.status, location)
            if redirect is None or redirects == MOST_REDIRECTS:
                return answer
            if not _keeps_key(to, redirect):
                key = ""
            to = redirect
        raise AssertionError("unreachable")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle = [connection for kept in self._idle.values() for connection in kept]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _send(
        self,
        url: str,
        body: bytes | None,
        headers: dict[str, str],
        silence: float,
        abort: Abort | None,
        kept: bool,
    ) -> tuple[Answer, str | None]:
        import http.client  # Takes 30 ms to import, and a worker with the channel rarely needs it.

        parts = urlsplit(url)
        origin = (parts.scheme, parts.netloc)
        connection = self._take(origin) if kept else None
        reused = connection is not None
        if abort is not None and abort.is_set():
            raise NoLongerWanted("no longer wanted")
        if connection is None:
            connection = http.client.HTTPConnection(parts.hostname or "")
            connection.sock = connect(url, min(silence, 30.0))
        response: http.client.HTTPResponse | None = None
        try:
            connection.sock.settimeout(silence)
            path, host = request_target(url)
            connection.putrequest(
                "GET" if body is None else "POST", path, skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("Host", host)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            if abort is not None:
                self._wait_begun(connection.sock, silence, abort)
            response = connection.getresponse()
            text = response.read()
        except (http.client.BadStatusLine, ConnectionResetError, BrokenPipeError) as error:
            connection.close()
            if reused and response is None:
                raise _StaleConnection() from error
            raise OSError(str(error) or "the connection was closed without an answer") from error
        except http.client.InvalidURL as error:
            connection.close()
            raise UnsendableRequest(str(error)) from error
        except http.client.HTTPException as error:
            connection.close()
            raise OSError(f"{type(error).__name__}: {error}") from error
        except UnicodeError as error:
            connection.close()
            raise UnsendableRequest(str(error)) from error
        except socket.timeout as error:
            connection.close()
            raise OSError(f"no answer within {silence:g} s") from error
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(origin, connection)
        return _answer(response, text), response.headers.get("location")

    def _wait_begun(self, sock: socket.socket, silence: float, abort: Abort) -> None:
        """
        Waits until the answer begins to come. From then on it is read, however short the time that is left.
        """
        ready = _readable((sock.fileno(), abort.fileno()), silence)
        if sock.fileno() in ready:
            if abort.is_set():
                sock.settimeout(self._begun_answer)
            else:
                abort.when_set(lambda: _limit(sock, self._begun_answer))
            return
        raise NoLongerWanted("no longer wanted") if ready else socket.timeout()

    def _take(self, origin: tuple[str, str]) -> http.client.HTTPConnection | None:
        with self._lock:
            idle = self._idle.get(origin)
            return idle.pop() if idle else None

    def _keep(self, origin: tuple[str, str], connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.setdefault(origin, []).append(connection)
                return
        connection.close()


def _readable(files: tuple[int, ...], seconds: float) -> list[int]:
    """
    Which of the files can be read. `select` does not know files with large numbers, so `poll` is used where
    there is one.
    """
    if not hasattr(select, "poll"):
        return select.select(files, [], [], seconds)[0]
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return [file for file, _ in poll.poll(seconds * 1000)]


def _limit(sock: socket.socket, seconds: float) -> None:
    """Cuts a connection whose answer does not come whole in time, while another thread reads it."""

    def cut() -> None:
        time.sleep(seconds)
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    threading.Thread(target=cut, daemon=True).start()


def _headers(body: bytes | None, job_id: str | None, mark: str | None, api_key: str) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": user_agent()}
    if api_key:
        headers["Authorization"] = api_key
    # An id that cannot stand in a header is left out: the one in the URL is what counts.
    if job_id is not None and _is_header_value(job_id):
        headers["X-Request-ID"] = job_id
    if mark is not None and _is_header_value(mark):
        headers["Berth-Chunk"] = mark
    if body is not None:
        # The public protocol sends JSON under this name, and its servers expect it.
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        headers["charset"] = "utf-8"
    return headers


def _is_header_value(text: str) -> bool:
    return all(" " <= char <= "~" for char in text)


def _answer(response: http.client.HTTPResponse, text: bytes) -> Answer:
    parsed: Any = None
    if response.headers.get("content-type", "").lower().startswith("application/json"):
        try:
            parsed = json.loads(text)
        except ValueError:
            pass  # What is not JSON is no answer; the status says the rest.
    try:
        retry_after: float | None = max(0.0, float(response.headers.get("retry-after", "")))
    except ValueError:
        retry_after = None
    return Answer(response.status, parsed, retry_after)


def _redirect(url: str, is_post: bool, status: int, location: str | None) -> str | None:
    """By 301, 302 and 303 a POST would become a GET without its body, so it does not follow those."""
    if location is None or not (status in _KEEP_METHOD or (not is_post and status in _BECOME_GET)):
        return None
    to = urljoin(url, location)
    return to if to.startswith(("http://", "https://")) else None


def _keeps_key(before: str, after: str) -> bool:
    """The key of this worker is for one host, and is not sent in the clear where it was not before."""
    one, other = urlsplit(before), urlsplit(after)
    return one.hostname == other.hostname and (one.scheme == other.scheme or other.scheme == "https")
