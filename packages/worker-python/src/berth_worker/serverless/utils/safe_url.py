"""
Opens addresses that come from outside. A job's input may name any address, also one of the worker's own
network, so only public ones are opened, and the connection goes to the very address that was checked.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
from email.message import Message
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from ...user_agent import user_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Set to 1, true or yes to allow private addresses, such as a bucket in the same network.
ALLOW_PRIVATE = "RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS"
MOST_BYTES = "RUNPOD_MAX_DOWNLOAD_BYTES"
DEFAULT_MOST_BYTES = 5 * 1024**3
MOST_REDIRECTS = 5
READ_BYTES = 1024 * 1024
SHARED_ADDRESSES = ipaddress.ip_network("100.64.0.0/10")


class UnsafeUrl(ValueError):
    """The address is not public, not http, or its content is too large."""


class Download:
    """An open response. Iterating over it reads it, up to the largest size that is allowed."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    @property
    def file_name(self) -> str | None:
        """The name that the server gives the file."""
        message = Message()
        message["content-disposition"] = self._response.headers.get("Content-Disposition", "")
        return message.get_filename()

    def __iter__(self) -> Iterator[bytes]:
        most = _most_bytes()
        size = 0
        while piece := self._response.read(READ_BYTES):
            size += len(piece)
            if size > most:
                raise UnsafeUrl(f"the download is larger than {most} bytes ({MOST_BYTES})")
            yield piece

    def __enter__(self) -> Download:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()


def open_url(url: str, timeout: float) -> Download:
    """Raises UnsafeUrl for an address that is not allowed, OSError where there is no good answer."""
    for _ in range(MOST_REDIRECTS + 1):
        download, location = _open(url, timeout)
        if location is None:
            return download
        download.__exit__()
        url = urljoin(url, location)
    raise UnsafeUrl(f"more than {MOST_REDIRECTS} redirects: {url}")


def is_public(address: str) -> bool:
    """Whether an IP address can be reached by everybody."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return (
        ip.is_global
        and not ip.is_multicast
        and not ip.is_reserved
        and not (ip.version == 4 and ip in SHARED_ADDRESSES)
    )


def _open(url: str, timeout: float) -> tuple[Download, str | None]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnsafeUrl(f"only http and https addresses can be downloaded, not {url!r}")
    secure = parts.scheme == "https"
    connection = http.client.HTTPConnection(parts.hostname, timeout=timeout)
    connection.sock = _connect(parts.hostname, parts.port or (443 if secure else 80), timeout, secure)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(
            "GET", path, headers={"Host": parts.netloc.rpartition("@")[2], "User-Agent": user_agent()}
        )
        response = connection.getresponse()
        if response.status in (301, 302, 303, 307, 308):
            location = response.headers.get("Location")
            if not location:
                raise OSError(f"{url} answered {response.status} without an address")
            return Download(connection, response), location
        if response.status >= 400:
            raise OSError(f"{url} answered {response.status}")
        if int(response.headers.get("Content-Length") or 0) > _most_bytes():
            raise UnsafeUrl(f"{url} is larger than {_most_bytes()} bytes ({MOST_BYTES})")
        return Download(connection, response), None
    except http.client.HTTPException as error:
        connection.close()
        raise OSError(f"{url}: {error!r}") from error
    except BaseException:
        connection.close()
        raise


def _connect(host: str, port: int, timeout: float, secure: bool) -> socket.socket:
    """To the first of the host's addresses that answers, where all of them are allowed."""
    found = list(
        dict.fromkeys(info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    )
    if os.environ.get(ALLOW_PRIVATE, "").strip().lower() not in ("1", "true", "yes"):
        for address in found:
            if not is_public(str(address)):
                raise UnsafeUrl(
                    f"{host!r} is {address}, which is not a public address; {ALLOW_PRIVATE}=true allows it"
                )
    error: OSError = OSError(f"{host!r} has no address")
    for address in found:
        try:
            plain = socket.create_connection((str(address), port), timeout)
        except OSError as failed:
            error = failed
            continue
        if not secure:
            return plain
        import ssl

        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    raise error


def _most_bytes() -> int:
    try:
        value = int(os.environ.get(MOST_BYTES, ""))
    except ValueError:
        return DEFAULT_MOST_BYTES
    return value if value > 0 else DEFAULT_MOST_BYTES
