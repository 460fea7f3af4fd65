"""A TCP proxy between a worker and the server, which cuts connections and can hide the channel."""

from __future__ import annotations

import socket
import ssl
import threading


class CuttingProxy:
    def __init__(self, port: int, hide_channel: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self._to = port
        self._tls = tls
        #: Requests for the channel get 404, as from a server that does not know it.
        self.hide_channel = hide_channel
        self.refuse = False
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.opened = 0
        self.channels = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cuts every connection, whatever is under way."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _close(end)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.opened += 1
            if self.refuse:
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            first = client.recv(65536)
            if b"/job-channel/" in first:
                self.channels += 1
                if self.hide_channel:
                    client.sendall(
                        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                    client.close()
                    return
            server = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs.add((client, server))
        threading.Thread(target=_pump, args=(server, client, b""), daemon=True).start()
        _pump(client, server, first)


def _pump(source: socket.socket, target: socket.socket, first: bytes) -> None:
    try:
        if first:
            target.sendall(first)
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        _close(source)
        _close(target)


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
