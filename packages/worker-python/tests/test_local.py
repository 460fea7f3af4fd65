"""A worker without a platform, the local server, the names of the public SDK, the wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import helpers

PACKAGE = Path(__file__).resolve().parents[1]
NAMES = """
import berth_worker as runpod
from berth_worker.serverless.utils import download_files_from_urls, upload_file_to_bucket
from berth_worker.serverless.utils import upload_in_memory_object, VolumeCache
from berth_worker.serverless.utils import rp_cleanup, rp_cuda, rp_debugger
from berth_worker.serverless.utils import rp_download, rp_upload, rp_validator
from berth_worker.serverless.utils.rp_validator import validate
from berth_worker.serverless.modules.rp_logger import RunPodLogger
from berth_worker.serverless import start, progress_update, register_fitness_check
NAMES = "start progress_update register_fitness_check runpod_version VolumeCache utils modules"
for name in NAMES.split():
    getattr(runpod.serverless, name)
runpod.serverless.utils.rp_validator.validate({}, {})
runpod.serverless.utils.rp_cuda.is_available
runpod.serverless.modules.rp_logger.RunPodLogger()
runpod.__version__, runpod.RunPodLogger
"""


class Local(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_file(self, text: str, *args: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "handler.py").write_text(text)
        env = {name: value for name, value in os.environ.items() if not name.startswith("RUNPOD_")}
        env["PYTHONPATH"] = str(helpers.SOURCES)
        return subprocess.run(
            [sys.executable, "handler.py", *args],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    HANDLER = (
        "import sys, berth_worker as runpod\n"
        "def handler(job): return {'args': sys.argv[1:], 'id': job['id']}\n"
        "runpod.serverless.start({'handler': handler})\n"
    )

    def test_test_input(self) -> None:
        done = self.run_file(self.HANDLER, "--own", "1", "--test_input", '{"input": {"a": 1}}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Job result: {'output': {'args': ['--own', '1'], 'id': 'local_test'}}", done.stdout)

    def test_test_input_file(self) -> None:
        done = self.run_file(self.HANDLER)
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_input.json", done.stdout)
        for text, code in (('{"input": {"a": 1}, "id": "x"}', 0), ("{}", 1), ("nonsense", 1)):
            (self.folder / "test_input.json").write_text(text)
            self.assertEqual(self.run_file(self.HANDLER).returncode, code, text)

    def test_failures_and_streams(self) -> None:
        start = "\nberth_worker.start({'handler': handler})\n"
        given = ("--test_input", '{"input": {}}')
        done = self.run_file(
            "import berth_worker\ndef handler(job): raise ValueError('broken')" + start, *given
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken", done.stdout)
        done = self.run_file(
            "import berth_worker\nasync def handler(job):\n    yield 1\n    yield 2" + start, *given
        )
        self.assertIn("Job result: {'output': [1, 2]}", done.stdout)
        self.assertEqual(
            self.run_file(
                "import berth_worker\ndef handler(job): return 1" + start, "--test_input", "nonsense"
            ).returncode,
            2,
        )

    def test_decorator(self) -> None:
        text = (
            "import berth_worker\n"
            "@berth_worker.handler(return_aggregate_stream=True)\n"
            "def work(job):\n"
            "    yield berth_worker.current_job().id\n"
            "berth_worker.run()\n"
        )
        done = self.run_file(text, "--test_input", '{"input": {}}')
        self.assertIn("['local_test']", done.stdout, done.stderr)

    def test_debugger(self) -> None:
        done = self.run_file(
            self.HANDLER, "--rp_debugger", "--rp_log_level", "INFO", "--test_input", '{"input": {}}'
        )
        self.assertIn("ready_delay_ms", done.stdout)

    def test_names_of_the_public_sdk(self) -> None:
        done = self.run_file(NAMES)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_import_loads_little_and_only_the_standard_library(self) -> None:
        code = (
            "import sys; before = set(sys.modules); import berth_worker\n"
            "loaded = {name.partition('.')[0] for name in set(sys.modules) - before} - {'berth_worker'}\n"
            "print(len(set(sys.modules) - before), *sorted(loaded))\n"
        )
        done = self.run_file(code)
        count, *loaded = done.stdout.split()
        # How many depends on what the start of Python has loaded: 29 to 62 were seen.
        self.assertLessEqual(int(count), 80, done.stdout)
        self.assertLessEqual(set(loaded), set(sys.stdlib_module_names))
        # Each of these takes longer than all the rest.
        self.assertFalse(set(loaded) & {"asyncio", "http", "ssl", "inspect", "logging"})


class Server(unittest.TestCase):
    def setUp(self) -> None:
        from berth_worker.dev_server import create_dev_server
        from berth_worker.result import ResultFormat

        def handler(job: dict) -> object:  # type: ignore[type-arg]
            if job["input"].get("fail"):
                raise ValueError("broken")
            return (number for number in range(3)) if job["input"].get("stream") else {"got": job["input"]}

        server = create_dev_server(handler, ResultFormat(), host="127.0.0.1", port=0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"

    def post(self, path: str, body: object = None) -> tuple[int, dict]:  # type: ignore[type-arg]
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body is not None else b"", method="POST"
        )
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def test_jobs(self) -> None:
        status, done = self.post("/runsync", {"input": {"a": 1}})
        self.assertEqual((status, done["status"], done["output"]), (200, "COMPLETED", {"got": {"a": 1}}))
        _, run = self.post("/run", {"input": {"stream": True}})
        self.assertEqual(run["status"], "IN_PROGRESS")
        self.assertEqual(
            self.post(f"/stream/{run['id']}")[1]["stream"], [{"output": 0}, {"output": 1}, {"output": 2}]
        )
        _, run = self.post("/run", {"input": {"fail": True}})
        failed = self.post(f"/status/{run['id']}")[1]
        self.assertEqual((failed["status"], "broken" in failed["error"]), ("FAILED", True))

    def test_bad_requests(self) -> None:
        self.assertEqual(self.post("/runsync", {"input": 1})[0], 422)
        self.assertEqual(self.post("/runsync", {})[0], 422)
        self.assertEqual(self.post("/status/unknown")[1]["error"], "Job ID not found")
        self.assertEqual(self.post("/nothing", {})[0], 404)


class Types(unittest.TestCase):
    def test_mypy_finds_nothing(self) -> None:
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not installed")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--no-incremental"], cwd=PACKAGE, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout)


class Wheel(unittest.TestCase):
    def test_the_wheel_holds_everything_and_runs(self) -> None:
        """Built without a network where setuptools is installed."""
        if importlib.util.find_spec("pip") is None or importlib.util.find_spec("setuptools") is None:
            self.skipTest("pip and setuptools are needed to build the wheel")
        with tempfile.TemporaryDirectory() as folder:
            import shutil

            source = Path(folder) / "source"
            shutil.copytree(
                PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "dist")
            )
            built = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "wheel",
                    "--no-deps",
                    "--no-build-isolation",
                    "--no-index",
                    "-w",
                    folder,
                    str(source),
                ],
                capture_output=True,
                text=True,
            )
            if (
                "No module named 'wheel'" in built.stderr
                or "invalid command 'bdist_wheel'" in built.stdout + built.stderr
            ):
                self.skipTest("this setuptools needs the wheel package")
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            (wheel,) = Path(folder).glob("berth_worker-*-py3-none-any.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
                metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
            wanted = {
                str(path.relative_to(PACKAGE / "src"))
                for path in (PACKAGE / "src" / "berth_worker").rglob("*")
                if path.suffix in (".py", ".typed")
            }
            self.assertEqual(wanted - names, set())
            self.assertNotRegex(metadata, re.compile("^Requires-Dist", re.M))
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(wheel)}
            done = subprocess.run(
                [sys.executable, "-c", "import berth_worker; print(berth_worker.__file__)"],
                env=env,
                capture_output=True,
                text=True,
            )
            self.assertIn(".whl", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
