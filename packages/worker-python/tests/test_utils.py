"""The helpers that handlers import."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import threading
import unittest
import zipfile
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import helpers  # noqa: F401
import berth_worker as runpod
from berth_worker.serverless.utils import rp_cleanup, rp_cuda, rp_download, rp_upload, safe_url
from berth_worker.serverless.utils.rp_debugger import (
    Checkpoints,
    FunctionTimer,
    LineTimer,
    get_debugger_output,
)
from berth_worker.serverless.utils.rp_validator import validate
from berth_worker.serverless.utils.rp_volume_cache import VolumeCache
from berth_worker.serverless.utils.s3 import S3Client, region_of


class Requests(BaseHTTPRequestHandler):
    """Answers files and keeps what is put."""

    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    def do_GET(self) -> None:
        if self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("Location", "/files/a.txt")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status = 404 if "missing" in self.path else 200
        body = self.server.archive if "zip" in self.path else b"content"  # type: ignore[attr-defined]
        self.send_response(status)
        if "named" in self.path:
            self.send_header("Content-Disposition", 'attachment; filename="real.png"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Requests.seen.append(
            (self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        )
        answer = b"<R><UploadId>u1</UploadId></R>" if "uploads" in self.path else b""
        self.send_response(200)
        self.send_header("ETag", f'"etag-{len(Requests.seen)}"')
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PUT

    def log_message(self, format: str, *args: object) -> None:
        pass


class InFolder(unittest.TestCase):
    """Each test has a working directory and a server."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(os.chdir, before)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("inside.txt", "inside")
        self.server.archive = packed.getvalue()  # type: ignore[attr-defined]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        Requests.seen = []
        self.enterEnv(RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS="true")

    def enterEnv(self, **variables: str) -> None:
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)


class Downloads(InFolder):
    def test_several(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()), mock.patch("time.sleep"):
            found = rp_download.download_files_from_urls(
                "j1",
                [
                    f"{self.url}/files/a.txt",
                    f"{self.url}/missing",
                    f"{self.url}/named",
                    f"{self.url}/redirect",
                ],
            )
        self.assertIsNone(found[1])
        self.assertEqual([Path(path or "").suffix for path in found], [".txt", "", ".png", ""])
        self.assertEqual(Path(found[0] or "").read_bytes(), b"content")
        self.assertEqual(Path(found[0] or "").parent, Path("jobs/j1/downloaded_files").resolve())

    def test_one_and_zip(self) -> None:
        found = rp_download.file(f"{self.url}/named")
        self.assertEqual(
            (found["type"], found["original_name"], found["extracted_path"]), ("png", "real.png", None)
        )
        unzipped = rp_download.file(f"{self.url}/a.zip")
        self.assertEqual((Path(unzipped["extracted_path"]) / "inside.txt").read_text(), "inside")
        rp_cleanup.clean(["jobs"])
        self.assertFalse(os.path.exists("job_files"))

    def test_only_public_addresses(self) -> None:
        self.enterEnv(RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS="")
        for url in (
            self.url,
            "http://169.254.169.254/",
            "http://[::1]/",
            "http://localhost/",
            "file:///etc/passwd",
        ):
            with self.assertRaises(safe_url.UnsafeUrl):
                rp_download.file(url)
        public = [
            address
            for address in (
                "8.8.8.8",
                "10.0.0.1",
                "100.64.0.1",
                "::ffff:10.0.0.1",
                "fe80::1",
                "2606:4700::1111",
                "x",
                "224.0.0.1",
            )
            if safe_url.is_public(address)
        ]
        self.assertEqual(public, ["8.8.8.8", "2606:4700::1111"])

    def test_size_limit(self) -> None:
        self.enterEnv(RUNPOD_MAX_DOWNLOAD_BYTES="3")
        with self.assertRaisesRegex(safe_url.UnsafeUrl, "larger than 3 bytes"):
            rp_download.file(f"{self.url}/a.txt")


class Uploads(InFolder):
    def test_to_a_bucket(self) -> None:
        creds = {"endpointUrl": self.url, "accessId": "AK", "accessSecret": "SK", "bucketName": "b"}
        address = rp_upload.upload_in_memory_object("a b.txt", b"data", creds, "b", "p")
        method, path, headers, body = Requests.seen[0]
        self.assertEqual((method, path, body), ("PUT", "/b/p/a%20b.txt", b"data"))
        self.assertRegex(
            headers["authorization"],
            r"^AWS4-HMAC-SHA256 Credential=AK/\d{8}/us-east-1/s3/aws4_request, "
            r"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=[0-9a-f]{64}$",
        )
        self.assertRegex(
            address, rf"^{self.url}/b/p/a%20b.txt\?X-Amz-Algorithm=.*&X-Amz-Signature=[0-9a-f]{{64}}$"
        )
        Path("f.txt").write_text("file")
        rp_upload.upload_file_to_bucket(
            "f.txt", "f.txt", creds, "b", extra_args={"ContentType": "text/plain", "Metadata": {"A": "1"}}
        )
        self.assertEqual(
            (Requests.seen[1][2]["content-type"], Requests.seen[1][2]["x-amz-meta-a"]), ("text/plain", "1")
        )
        self.assertEqual(rp_upload.bucket_upload("j", ["f.txt"], creds), [f"{self.url}/b/j/f.txt"])

    def test_in_parts(self) -> None:
        with mock.patch("berth_worker.serverless.utils.s3.PART_BYTES", 4):
            Path("f").write_bytes(b"0123456789")
            S3Client(self.url, "AK", "SK").put_file("b", "f", "f")
        self.assertEqual([seen[3] for seen in Requests.seen[1:4]], [b"0123", b"4567", b"89"])
        self.assertIn(b"<PartNumber>3</PartNumber>", Requests.seen[4][3])

    def test_without_a_bucket(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(rp_upload.upload_in_memory_object("a.txt", b"data"), "local_upload/a.txt")
            Path("i.png").write_bytes(b"png")
            found = rp_upload.files("j", ["i.png", "i.png"])
        self.assertTrue(
            all(path.startswith("simulated_uploaded/") and path.endswith(".png") for path in found)
        )

    def test_the_signature_of_the_public_example(self) -> None:
        """The presigned GET of Amazon's documentation of Signature Version 4."""
        client = S3Client(
            "https://examplebucket.s3.amazonaws.com",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        )
        address = client.presigned_get(
            "examplebucket", "test.txt", 86400, datetime(2013, 5, 24, tzinfo=timezone.utc)
        )
        self.assertTrue(
            address.endswith(
                "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
            ),
            address,
        )

    def test_regions(self) -> None:
        self.assertEqual(
            [
                region_of(url)
                for url in (
                    "https://b.s3.eu-west-1.amazonaws.com",
                    "https://s3.us-west-004.backblazeb2.com",
                    "https://b.fra1.digitaloceanspaces.com",
                    "https://h",
                )
            ],
            ["eu-west-1", "us-west-004", "fra1", None],
        )


class Validation(unittest.TestCase):
    def test_values(self) -> None:
        schema = {
            "n": {"type": int, "required": True, "constraints": lambda n: n is None or n < 10},
            "f": {"type": float, "required": False, "default": 0.5},
            "s": {"type": str, "required": False, "default": None},
        }
        self.assertEqual(
            validate({"n": 1, "f": 2}, schema), {"validated_input": {"n": 1, "f": 2.0, "s": None}}
        )
        self.assertEqual(validate({}, schema)["errors"], ["n is a required input."])
        self.assertEqual(
            validate({"n": 12, "x": 1}, schema)["errors"],
            ["Unexpected input. x is not a valid input option.", "n does not meet the constraints."],
        )
        self.assertEqual(
            validate({"n": "1"}, schema)["errors"], ["n should be <class 'int'> type, not <class 'str'>."]
        )

    def test_schemas(self) -> None:
        self.assertEqual(
            validate({"n": 1}, {"n": "not a rule"})["errors"], ["Schema error, n is not a dictionary."]
        )
        self.assertEqual(
            validate({}, {"n": {"type": int, "required": False}})["errors"],
            ["Schema error, missing default value for n."],
        )


class Others(InFolder):
    def test_timings(self) -> None:
        @FunctionTimer
        def timed() -> int:
            return 3

        Checkpoints().clear()
        self.assertEqual(timed(), 3)
        with LineTimer("line"):
            pass
        self.assertEqual([entry["name"] for entry in get_debugger_output()["timestamps"]], ["timed", "line"])
        self.assertEqual(timed(), 3)

    def test_cuda(self) -> None:
        self.assertIsInstance(rp_cuda.is_available(), bool)

    def test_volume_cache(self) -> None:
        os.makedirs("volume")
        os.makedirs("models/deep")
        Path("models/deep/a.bin").write_text("a")
        self.assertFalse(VolumeCache("models", namespace="n", volume_path="missing").available)
        cache = VolumeCache(["models"], namespace="n", volume_path=os.path.abspath("volume"))
        self.assertEqual(cache.sync(background=False), 1)
        self.assertEqual(cache.sync(background=False), 0)
        os.remove("models/deep/a.bin")
        with cache:
            self.assertEqual(Path("models/deep/a.bin").read_text(), "a")
        with self.assertRaises(ValueError):
            VolumeCache("models", namespace="../other")

    def test_logger(self) -> None:
        log = runpod.RunPodLogger()
        self.assertIs(log, runpod.RunPodLogger())
        with contextlib.redirect_stdout(io.StringIO()) as out:
            log.info("text", "j1")
            log.secret("key", "abcd")
            with mock.patch.dict(os.environ, {"RUNPOD_ENDPOINT_ID": "e"}):
                log.error("x" * 5000)
        lines = out.getvalue().split("\n")
        self.assertEqual(lines[:2], ["INFO   | j1 | text", "INFO   | key: a**d"])
        self.assertIn("TRUNCATED 904 CHARACTERS", json.loads(lines[2])["message"])
        for level in ("WARNING", 9, None):
            with self.assertRaises(ValueError):
                log.set_level(level)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
