"""What handlers return, yield and raise, and what comes of it, over both protocols."""

from __future__ import annotations

import json
import time
import unittest

from worker_case import WorkerCase

ALL_KINDS = """
def handler(job):
    what = job["input"]["do"]
    if what == "echo":
        return job["input"]
    if what == "raise":
        raise ValueError("broken on purpose")
    if what == "bytes":
        return {"data": b"x"}
    if what == "circle":
        value = []
        value.append(value)
        return value
    if what == "nan":
        return {"nan": float("nan"), "inf": float("-inf")}
    if what == "surrogate":
        return "\\ud800 and \\u00e9"
    if what == "error":
        return {"error": {"code": 5}, "extra": 1}
    if what == "nothing":
        return None
    if what == "empty":
        return {}
    if what == "big":
        return {"big": 2**60, "float": 1.0}
    if what == "job":
        return job
    if what == "awaitable":
        async def later():
            await asyncio.sleep(0.01)
            return "awaited"
        return later()
    if what == "deep":
        value = []
        for _ in range(100000):
            value = [value]
        return value
    if what == "print":
        for _ in range(100):
            print("x" * 2**20)
        return "printed"
"""

GENERATOR = """
def handler(job):
    for number in range(job["input"]["count"]):
        if number == job["input"].get("raise_at"):
            raise RuntimeError("stream broken")
        if number == job["input"].get("error_at"):
            yield {"error": "no more"}
        if number == job["input"].get("bytes_at"):
            yield b"x"
        yield {"n": number}
"""


class Handlers:
    """The same tests for both protocols."""

    def test_plain_functions(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        self.worker(endpoint, ALL_KINDS)

        def do(what: str) -> dict:  # type: ignore[type-arg]
            return self.result(endpoint, {"do": what})

        with self.subTest("returns"):
            self.assertEqual(do("echo")["output"], {"do": "echo"})
            self.assertEqual((do("nothing")["status"], do("empty")["status"]), ("COMPLETED", "COMPLETED"))
            self.assertEqual(do("big")["output"]["big"], 2**60)
            self.assertEqual(do("nan")["output"], {"nan": None, "inf": None})
            self.assertEqual(do("surrogate")["status"], "COMPLETED")
            self.assertEqual(do("awaitable")["output"], "awaited")
            self.assertIn("id", do("job")["output"])
        with self.subTest("raises"):
            failed = do("raise")
            self.assertEqual(failed["status"], "FAILED")
            report = json.loads(failed["error"])
            self.assertEqual(
                (report["error_type"], report["error_message"]), ("<class 'ValueError'>", "broken on purpose")
            )
            self.assertIn("broken on purpose", report["error_traceback"])
        with self.subTest("returns an error"):
            failed = do("error")
            self.assertEqual((failed["status"], failed["output"]), ("FAILED", {"extra": 1}))
        with self.subTest("returns what JSON cannot hold"):
            for what in ("bytes", "circle", "deep"):
                failed = do(what)
                self.assertEqual(failed["status"], "FAILED", what)
                self.assertIn("cannot be sent as JSON", failed["error"])
        with self.subTest("prints 100 MB"):
            self.assertEqual(do("print")["output"], "printed")
        with self.subTest("still works"):
            self.assertEqual(do("echo")["status"], "COMPLETED")

    def test_generators(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        self.worker(endpoint, GENERATOR)
        job = self.berth.run(endpoint, {"count": 300})
        self.assertEqual(self.berth.stream(endpoint, job), [{"n": n} for n in range(300)])
        self.assertEqual(self.berth.status(endpoint, job)["output"], [])
        job = self.berth.run(endpoint, {"count": 9, "raise_at": 3})
        self.assertEqual(self.berth.stream(endpoint, job), [{"n": n} for n in range(3)])
        failed = self.berth.status(endpoint, job)
        self.assertEqual(failed["status"], "FAILED")
        self.assertTrue(failed["error"].startswith("handler: stream broken \ntraceback: "), failed["error"])
        failed = self.result(endpoint, {"count": 9, "error_at": 3})
        self.assertEqual((failed["status"], failed["error"]), ("FAILED", "no more"))
        failed = self.result(endpoint, {"count": 9, "bytes_at": 3})
        self.assertIn("a chunk cannot be sent as JSON", failed["error"])

    def test_async_functions_and_generators(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        self.worker(
            endpoint,
            "async def handler(job):\n    await asyncio.sleep(0.01)\n    return 1 / job['input']['by']\n",
        )
        self.assertEqual(self.result(endpoint, {"by": 2})["output"], 0.5)
        self.assertEqual(self.result(endpoint, {"by": 0})["status"], "FAILED")
        endpoint = self.endpoint()
        self.worker(
            endpoint,
            "async def handler(job):\n"
            "    for number in range(job['input']['count']):\n"
            "        yield number\n",
            "'return_aggregate_stream': True",
        )
        done = self.result(endpoint, {"count": 40})
        self.assertEqual(done["output"], list(range(40)))

    def test_progress(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        self.worker(
            endpoint,
            "def handler(job):\n"
            "    runpod.serverless.progress_update(job, {'at': 1})\n"
            "    runpod.serverless.progress_update(job, b'x')\n"
            "    time.sleep(1.5)\n    runpod.current_job().progress('late')\n    return 'done'\n",
        )
        job = self.berth.run(endpoint, {})
        for _ in range(200):
            shown = self.berth.status(endpoint, job)
            if "output" in shown:
                break
            time.sleep(0.02)
        self.assertEqual((shown["status"], shown["output"]), ("IN_PROGRESS", {"at": 1}))
        self.assertEqual(self.berth.wait(endpoint, job)["output"], "done")

    def test_concurrency(self: WorkerCase) -> None:  # type: ignore[misc]
        for kind, sleep in (("def", "time.sleep"), ("async def", "await asyncio.sleep")):
            endpoint = self.endpoint()
            self.worker(
                endpoint,
                # Until five have met, then for as long as a sixth would need.
                "running = most = 0\nuntil = time.monotonic() + 30\n"
                f"{kind} handler(job):\n    global running, most\n"
                "    running += 1\n    most = max(most, running)\n"
                f"    while most < 5 and time.monotonic() < until: {sleep}(0.01)\n"
                f"    {sleep}(0.3)\n    running -= 1\n    return most\n",
                "'concurrency_modifier': lambda current: 5",
            )
            jobs = [self.berth.run(endpoint, {}) for _ in range(10)]
            self.assertEqual(max(self.berth.wait(endpoint, job)["output"] for job in jobs), 5, kind)


class HandlersOverTheChannel(Handlers, WorkerCase):
    channel = "fast"


class HandlersByThePublicProtocol(Handlers, WorkerCase):
    channel = "public"


if __name__ == "__main__":
    unittest.main()
