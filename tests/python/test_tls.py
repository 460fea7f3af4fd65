"""Workers that reach the server by https, over both protocols."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import unittest

from worker_case import WorkerCase

HANDLER = """
def handler(job):
    for number in range(job["input"]["count"]):
        yield "x" * job["input"].get("size", 1)
"""


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
class Tls(WorkerCase):
    def test_both_protocols(self) -> None:
        certificate, key = str(self.berth.folder / "cert.pem"), str(self.berth.folder / "key.pem")
        command = (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
            f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
        )
        subprocess.run(command.split(), check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        proxy = self.proxy(tls=context)
        for channel in ("fast", "public"):
            self.channel = channel
            endpoint = self.endpoint()
            worker = self.worker(endpoint, HANDLER, base=proxy.url, env={"SSL_CERT_FILE": certificate})
            self.assertEqual(
                self.berth.stream(endpoint, self.berth.run(endpoint, {"count": 200})),
                ["x"] * 200,
                worker.log[-2000:],
            )
            large = self.berth.stream(endpoint, self.berth.run(endpoint, {"count": 20, "size": 500_000}))
            self.assertEqual([len(chunk) for chunk in large], [500_000] * 20)
            proxy.cut()
            self.assertEqual(self.berth.stream(endpoint, self.berth.run(endpoint, {"count": 3})), ["x"] * 3)
            self.assertEqual(worker.stop(), 0)
        stranger = self.worker(self.endpoint(), HANDLER, base=proxy.url)
        stranger.wait_log("certificate")


if __name__ == "__main__":
    unittest.main()
