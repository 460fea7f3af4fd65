"""Plain and TLS connections."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

#: How long a dead peer may go unnoticed by the system while nothing is sent.
KEEPALIVE_SECONDS = 10


def connect(url: str, timeout: float) -> socket.socket:
    """
    Opens a connection to the host of an http or https URL. Raises OSError, also for a certificate that is not
    valid.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    plain = socket.create_connection((host, parts.port or (443 if secure else 80)), timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
        if not secure:
            return plain
        import ssl

        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def request_target(url: str) -> tuple[str, str]:
    """The path with its query, and the value of the Host header."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # What has no place in a request line is escaped, as browsers do.
    return "".join(
        char if "!" <= char <= "~" else "".join(f"%{byte:02X}" for byte in char.encode()) for char in path
    ), host
