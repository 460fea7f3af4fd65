"""Asks a server for the channel, with an HTTP Upgrade."""

from __future__ import annotations

import errno
import socket
import time
from typing import NamedTuple, Union

from ..sockets import connect, request_target
from ..user_agent import user_agent

PROTOCOL = "berth-worker/1"
LONGEST_HEAD = 65_536

#: Errors that say that nobody is there at all.
_NOBODY = {errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN}


class Terms(NamedTuple):
    """What a server does that earlier ones did not."""

    #: It takes jobs back that were not started, so some may be taken ahead.
    takes_back: bool = False
    #: It acknowledges chunks that have a number.
    keeps_chunks: bool = False
    #: It answers heartbeats.
    answers: bool = False


class Opened(NamedTuple):
    socket: socket.socket
    #: What came after the answer.
    head: bytes
    terms: Terms


class Refused(NamedTuple):
    """
    The server answered something else, or nothing that can be understood: it does not offer the channel.
    """

    why: str
    lasting: bool


class Unreachable(NamedTuple):
    """There is no server now."""

    why: str


Upgrade = Union[Opened, Refused, Unreachable]


def upgrade(url: str, api_key: str, timeout: float) -> Upgrade:
    deadline = time.monotonic() + timeout
    try:
        connection = connect(url, timeout)
    except socket.gaierror as error:
        return Unreachable(str(error))
    except socket.timeout:
        return Unreachable(f"no connection within {timeout:g} s")
    except OSError as error:
        return Unreachable(str(error)) if error.errno in _NOBODY else Refused(str(error), False)
    outcome: Upgrade | None = None
    try:
        connection.sendall(_request(url, api_key))
        outcome = _read_answer(connection, deadline, timeout)
    except socket.timeout:
        outcome = Refused(f"no answer within {timeout:g} s", False)
    except OSError as error:
        outcome = Refused(str(error), False)
    finally:
        if not isinstance(outcome, Opened):
            connection.close()
    return outcome


def _request(url: str, api_key: str) -> bytes:
    path, host = request_target(url)
    key = f"Authorization: {api_key}\r\n" if api_key else ""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n"
        f"User-Agent: {user_agent()}\r\n{key}\r\n"
    ).encode("latin-1")


def _read_answer(connection: socket.socket, deadline: float, timeout: float) -> Upgrade:
    received = b""
    while b"\r\n\r\n" not in received:
        left = deadline - time.monotonic()
        if left <= 0 or len(received) > LONGEST_HEAD:
            return Refused(f"no answer within {timeout:g} s", False)
        connection.settimeout(left)
        piece = connection.recv(65_536)
        if not piece:
            return Refused("the server closed the connection without an answer", False)
        received += piece
    text, _, head = received.partition(b"\r\n\r\n")
    status, headers = _parse(text.decode("latin-1"))
    if status != 101:
        return Refused(f"the server answered {status}", status < 500 and status != 429)
    offered = headers.get("upgrade", "nothing")
    if offered.lower() != PROTOCOL:
        return Refused(f"the server offers {offered} instead of {PROTOCOL}", True)
    terms = Terms("berth-takes-back" in headers, "berth-keeps-chunks" in headers, "berth-answers" in headers)
    return Opened(connection, head, terms)


def _parse(text: str) -> tuple[int, dict[str, str]]:
    first, *rest = text.split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    pairs = (line.partition(":") for line in rest)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}
