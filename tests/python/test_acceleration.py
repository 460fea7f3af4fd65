"""
The acceleration hook with the real public SDK. BERTH_SDK_PYTHONS names Pythons that have it, separated by
colons; without it the Python of the test counts, if it has the SDK, or that of the tests of clients.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

from berth_server import REPOSITORY, SOURCES, WorkerProcess
from worker_case import WorkerCase, end

HOOK = SOURCES / "berth_worker" / "accelerate" / "path"
PYTHONS = [python for python in os.environ.get("BERTH_SDK_PYTHONS", "").split(":") if python]
if not PYTHONS and importlib.util.find_spec("runpod") is not None:
    PYTHONS = [sys.executable]
#: Where the tests of clients install it.
INSTALLED = REPOSITORY / "clients" / ".installed" / "runpod" / "bin" / "python"
if not PYTHONS and INSTALLED.exists():
    PYTHONS = [str(INSTALLED)]

HANDLER = """
import asyncio, sys, time
import runpod
from runpod.serverless.utils.rp_debugger import FunctionTimer

@FunctionTimer
def timed():
    return 1

def handler(job):
    what = job["input"].get("do")
    timed()
    if what == "raise":
        raise ValueError("broken on purpose")
    if what == "error":
        return {"error": {"code": 5}, "extra": 1}
    if what == "progress":
        runpod.serverless.progress_update(job, "half")
        time.sleep(1)
    return job["input"]
"""
GENERATOR = """
import runpod

def handler(job):
    yield {"n": 1}
    yield {"n": 2}
    if job["input"].get("raise"):
        raise RuntimeError("stream broken")
    yield {"error": "stopped"} if job["input"].get("error") else "last"
"""
START = "\nrunpod.serverless.start({'handler': handler, 'return_aggregate_stream': True})\n"


@unittest.skipUnless(PYTHONS, "no Python with the runpod package: set BERTH_SDK_PYTHONS")
class Acceleration(WorkerCase):
    def sdk_worker(
        self,
        endpoint: str,
        handler: str,
        python: str,
        path: list[Path] | None = None,
        base: str | None = None,
        env: dict[str, str] | None = None,
    ) -> WorkerProcess:
        WorkerCase._names += 1
        variables = self.berth.worker_env(endpoint, f"sdk-{WorkerCase._names}", base)
        variables["PYTHONPATH"] = ":".join(str(entry) for entry in (path if path is not None else [HOOK]))
        worker = WorkerProcess(
            handler + START,
            {**variables, **(env or {})},
            self.berth.folder,
            python=python,
            with_sources=False,
        )
        self.addCleanup(end, worker)
        return worker

    def outcomes(self, endpoint: str, inputs: list[dict]) -> list[tuple]:  # type: ignore[type-arg]
        found = []
        for input in inputs:
            job = self.berth.run(endpoint, input)
            chunks = self.berth.stream(endpoint, job)
            done = self.berth.status(endpoint, job)
            error = done.get("error")
            if isinstance(error, str) and error.startswith("{"):
                report = json.loads(error)
                error = (
                    sorted(report),
                    report["error_type"],
                    report["error_message"],
                    report["runpod_version"],
                )
            elif isinstance(error, str):
                error = error.partition("traceback:")[0]
            found.append((done["status"], done.get("output"), error, chunks))
        return found

    def test_results_are_those_of_the_sdk(self) -> None:
        plain_inputs = [{"a": 1.0}, {"do": "raise"}, {"do": "error"}, {}]
        stream_inputs: list[dict] = [{}, {"raise": True}, {"error": True}]  # type: ignore[type-arg]
        for python in PYTHONS:
            found = []
            for path in ([], [HOOK]):
                plain, streaming = self.endpoint(), self.endpoint()
                workers = [
                    self.sdk_worker(plain, HANDLER, python, path),
                    self.sdk_worker(streaming, GENERATOR, python, path),
                ]
                found.append((self.outcomes(plain, plain_inputs), self.outcomes(streaming, stream_inputs)))
                for worker in workers:
                    self.assertEqual(
                        "This worker is accelerated" in worker.log, bool(path), worker.log[-2000:]
                    )
                    end(worker)
            self.assertEqual(found[0], found[1], python)

    def test_it_is_fast_and_stops(self) -> None:
        for python in PYTHONS:
            endpoint = self.endpoint()
            jobs = [self.berth.run(endpoint, {"n": n}) for n in range(200)]
            worker = self.sdk_worker(endpoint, HANDLER, python)
            worker.wait_log("This worker is accelerated", 60)
            begun = time.monotonic()
            for n, job in enumerate(jobs):
                self.assertEqual(self.berth.wait(endpoint, job)["output"], {"n": n})
            self.assertLess(time.monotonic() - begun, 5, "200 jobs take 200 s without acceleration")
            job = self.berth.run(endpoint, {"do": "progress"})
            while "output" not in (shown := self.berth.status(endpoint, job)):
                time.sleep(0.02)
            self.assertEqual(shown["output"], "half")
            self.assertEqual(worker.stop(), 0)

    def test_a_server_without_the_channel_leaves_the_worker_as_it_was(self) -> None:
        endpoint = self.endpoint()
        worker = self.sdk_worker(endpoint, HANDLER, PYTHONS[0], base=self.proxy(hide_channel=True).url)
        self.assertEqual(self.result(endpoint, {"n": 1})["output"], {"n": 1})
        self.assertEqual(worker.log.count("this worker is not accelerated"), 1, worker.log)

    def test_it_can_be_turned_off(self) -> None:
        endpoint = self.endpoint()
        worker = self.sdk_worker(endpoint, HANDLER, PYTHONS[0], env={"BERTH_ACCELERATE": "off"})
        self.assertEqual(self.result(endpoint, {"n": 1})["output"], {"n": 1})
        self.assertNotIn("accelerated", worker.log)


class Hook(unittest.TestCase):
    """The hook without a server, on a package that looks like the SDK."""

    def setUp(self) -> None:
        import tempfile

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file.parent

    def sdk(
        self,
        version: str,
        worker: str = "def _is_local(config): return False\ndef main(config):\n    print('as it was')\n",
    ) -> Path:
        for package in ("runpod", "runpod/serverless", "runpod/serverless/modules"):
            self.write(f"sdk/{package}/__init__.py", "")
        self.write("sdk/runpod/version.py", f"__version__ = '{version}'\n")
        self.write(
            "sdk/runpod/serverless/modules/rp_progress.py",
            "def progress_update(job, progress): print('as it was')\n",
        )
        self.write(
            "sdk/runpod/serverless/worker.py", "from runpod.serverless.modules import rp_progress\n" + worker
        )
        return self.folder / "sdk"

    def python(
        self, code: str, *path: Path, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(str(entry) for entry in (HOOK, *path)),
            "RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:9/v2/e/job-take/$ID?a=b",
            "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:9/v2/e/job-done/$RUNPOD_POD_ID/$ID?a=b",
            **(env or {}),
        }
        return subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=30
        )

    RUN = "import runpod.version, runpod.serverless.worker as w; w.main({'handler': print})"

    def test_unknown_versions_stay_as_they_are(self) -> None:
        for version in ("1.6.2", "1.13.0", "2.0.0", "nonsense", "0.9.1.dev5+g123"):
            done = self.python(self.RUN, self.sdk(version))
            self.assertEqual((done.returncode, done.stdout), (0, "as it was\n"), version)
            self.assertEqual(done.stderr.count("not accelerated"), 1, done.stderr)
            self.assertIn("is not known", done.stderr)

    def test_an_sdk_of_another_shape_stays_as_it_is(self) -> None:
        done = self.python(
            "import runpod.version, runpod.serverless.worker as w; w.main(1, 2)",
            self.sdk("1.12.0", "def main(config, more):\n    print('as it was')\n"),
        )
        self.assertEqual((done.returncode, done.stdout), (0, "as it was\n"), done.stderr)
        self.assertIn("another worker.main", done.stderr)

    def test_without_a_server_the_sdk_goes_on(self) -> None:
        done = self.python(self.RUN, self.sdk("1.12.0"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("as it was", done.stdout)
        self.assertIn("not accelerated", done.stdout)

    def test_an_existing_sitecustomize_runs(self) -> None:
        existing = self.write("existing/sitecustomize.py", "import builtins\nbuiltins.existing = __file__\n")
        done = self.python(
            "import sitecustomize, sys; print(existing, sitecustomize.__file__); print(sys.path)", existing
        )
        self.assertEqual(
            done.stdout.split("\n")[0],
            f"{existing / 'sitecustomize.py'} {existing / 'sitecustomize.py'}",
            done.stderr,
        )
        self.assertNotIn(str(HOOK), done.stdout)

    def test_an_existing_sitecustomize_that_fails_is_reported_as_by_python(self) -> None:
        done = self.python("print('goes on')", self.write("existing/sitecustomize.py", "1 / 0\n"))
        self.assertEqual((done.returncode, done.stdout), (0, "goes on\n"))
        self.assertIn("ZeroDivisionError", done.stderr)

    def test_a_package_that_is_not_whole_leaves_the_sdk_as_it_is(self) -> None:
        import shutil

        broken = self.folder / "copy" / "berth_worker" / "accelerate" / "path"
        shutil.copytree(HOOK, broken)
        sdk = self.sdk("1.12.0")
        done = self.python(self.RUN, sdk, env={"PYTHONPATH": f"{broken}:{sdk}"})
        self.assertEqual((done.returncode, done.stdout), (0, "as it was\n"), done.stderr)
        self.assertEqual(done.stderr.count("not accelerated"), 1, done.stderr)

    def test_a_folder_that_is_missing_changes_nothing(self) -> None:
        sdk = self.sdk("1.12.0")
        done = self.python(self.RUN, sdk, env={"PYTHONPATH": f"{self.folder / 'missing'}:{sdk}"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "as it was\n", ""))

    def test_other_programs_are_not_touched(self) -> None:
        done = self.python("import sys; print([name for name in sys.modules if 'berth' in name])")
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))


@unittest.skipUnless(PYTHONS, "no Python with the runpod package: set BERTH_SDK_PYTHONS")
class AcceleratedByTheServer(WorkerCase):
    """Workers that the server starts on the process engine, with and without `accelerate`."""

    def start(self, **more: object) -> tuple[str, dict[str, object]]:
        """An endpoint with one worker, and the worker as the list shows it after a job."""
        script = self.berth.folder / "served.py"
        script.write_text(HANDLER + START)
        endpoint = self.endpoint(
            cmd=[PYTHONS[0], str(script)],
            workers={"min": 0, "max": 1},
            env={"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "true"},
            **more,
        )
        done = self.result(endpoint, {"n": 1}, seconds=90)
        self.assertEqual((done["status"], done["output"]), ("COMPLETED", {"n": 1}))
        listed = self.berth.request("GET", f"/v2/serverless/{endpoint}/workers")[1]["workers"]
        self.assertEqual(len(listed), 1)
        return endpoint, listed[0]

    def test_an_endpoint_that_asks_for_it(self) -> None:
        endpoint, worker = self.start(accelerate=True)
        self.assertIs(worker["accelerated"], True)
        self.assertIs(self.berth.request("GET", f"/v2/serverless/{endpoint}")[1]["accelerate"], True)
        begun = time.monotonic()
        for n in range(10):
            self.assertEqual(
                self.berth.request("POST", f"/v2/{endpoint}/runsync", {"input": {"n": n}})[1]["output"],
                {"n": n},
            )
        # Unchanged, the SDK takes about a second for each.
        self.assertLess(time.monotonic() - begun, 5)
        # What is built into a worker is part of the release.
        status, changed = self.berth.request("PATCH", f"/v2/serverless/{endpoint}", {"accelerate": False})
        self.assertEqual((status, changed["accelerate"]), (200, False))
        self.assertEqual(
            self.berth.request("GET", f"/v2/serverless/{endpoint}/workers")[1]["endpointVersion"], 1
        )

    def test_an_endpoint_that_does_not(self) -> None:
        endpoint, worker = self.start()
        self.assertIs(worker["accelerated"], False)
        self.assertIs(self.berth.request("GET", f"/v2/serverless/{endpoint}")[1]["accelerate"], False)


if __name__ == "__main__":
    unittest.main()
