"""Cancelling jobs, stopping workers, handlers that end the process or block it, over both protocols."""

from __future__ import annotations

import time
import unittest

from worker_case import WorkerCase

CANCELLABLE = """
def handler(job):
    kind = job["input"].get("kind")
    if kind is None:
        return "quick"
    context = runpod.current_job()
    print("running", flush=True)
    if kind == "event":
        context.wait_cancelled(30)
        print(f"cancelled: {context.cancelled}", flush=True)
        return "too late"
    if kind == "deaf":
        time.sleep(60)
"""

ASYNC_CANCELLABLE = """
async def handler(job):
    if not job["input"].get("sleep"):
        return "quick"
    print("running", flush=True)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("got CancelledError", flush=True)
        if job["input"].get("swallow"):
            return "swallowed"
        raise
"""

ENDLESS_GENERATOR = """
def handler(job):
    if not job["input"].get("endless"):
        yield "quick"
        return
    try:
        number = 0
        while True:
            number += 1
            yield number
            if number == 3:
                print("running", flush=True)
            time.sleep(0.05)
    except GeneratorExit:
        print("closed", flush=True)
        raise
"""


class Lifecycle:
    """The same tests for both protocols."""

    def cancel_running(  # type: ignore[misc]
        self: WorkerCase, handler: str, input: dict[str, object], told: str
    ) -> None:
        endpoint = self.endpoint()
        worker = self.worker(endpoint, handler)
        job = self.berth.run(endpoint, input)
        worker.wait_log("running")
        self.assertEqual(self.berth.request("POST", f"/v2/{endpoint}/cancel/{job}")[0], 200)
        if told:
            worker.wait_log(told)
        quick = self.berth.wait(endpoint, self.berth.run(endpoint, {}))
        self.assertEqual(quick["status"], "COMPLETED")
        time.sleep(0.3)
        self.assertEqual(self.berth.status(endpoint, job)["status"], "CANCELLED")
        self.assertEqual(worker.stop(), 0)

    def test_cancellation_reaches_a_plain_function(self) -> None:
        self.cancel_running(CANCELLABLE, {"kind": "event"}, "cancelled: True")

    def test_a_cancelled_function_that_never_ends_loses_its_place_and_does_not_keep_the_process(self) -> None:
        self.cancel_running(CANCELLABLE, {"kind": "deaf"}, "")

    def test_cancellation_reaches_a_coroutine(self) -> None:
        self.cancel_running(ASYNC_CANCELLABLE, {"sleep": True}, "got CancelledError")
        self.cancel_running(ASYNC_CANCELLABLE, {"sleep": True, "swallow": True}, "got CancelledError")

    def test_cancellation_closes_a_generator(self) -> None:
        self.cancel_running(ENDLESS_GENERATOR, {"endless": True}, "closed")

    def test_sigterm_finishes_the_running_job(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        worker = self.worker(
            endpoint,
            "def handler(job):\n    print('running', flush=True)\n    time.sleep(1)\n    return 'finished'\n",
        )
        jobs = [self.berth.run(endpoint, {}) for _ in range(3)]
        worker.wait_log("running")
        self.assertEqual(worker.stop(), 0)
        self.assertEqual(self.berth.status(endpoint, jobs[0])["output"], "finished")
        self.assertEqual(
            [self.berth.status(endpoint, job)["status"] for job in jobs[1:]], ["IN_QUEUE", "IN_QUEUE"]
        )

    def test_refresh_worker(self: WorkerCase) -> None:  # type: ignore[misc]
        for config, output in (
            ("'refresh_worker': True", "{'a': 1}"),
            ("", "{'a': 1, 'refresh_worker': True}"),
        ):
            endpoint = self.endpoint()
            worker = self.worker(endpoint, f"def handler(job):\n    return {output}\n", config)
            self.assertEqual(self.result(endpoint, {})["output"], {"a": 1})
            self.assertEqual(worker.process.wait(10), 0)

    def test_sys_exit_fails_the_job_and_ends_the_worker(self: WorkerCase) -> None:  # type: ignore[misc]
        for kind in ("def", "async def"):
            endpoint = self.endpoint()
            worker = self.worker(endpoint, f"{kind} handler(job):\n    sys.exit(3)\n")
            failed = self.result(endpoint, {})
            self.assertEqual(failed["status"], "FAILED")
            self.assertIn("SystemExit", failed["error"])
            self.assertEqual(worker.process.wait(10), 3)

    def test_a_killed_process_loses_no_other_job(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        deadly = (
            "def handler(job):\n    if job['input'].get('die'):\n        os._exit(4)\n    return 'alive'\n"
        )
        worker = self.worker(endpoint, deadly)
        self.assertEqual(self.result(endpoint, {})["output"], "alive")
        dying = self.berth.run(endpoint, {"die": True})
        others = [self.berth.run(endpoint, {}) for _ in range(20)]
        self.assertEqual(worker.process.wait(10), 4)
        self.worker(endpoint, "def handler(job):\n    return 'alive'\n")
        for job in others:
            self.assertEqual(self.berth.wait(endpoint, job, 90)["output"], "alive")
        self.assertIn(self.berth.wait(endpoint, dying, 90)["status"], ("COMPLETED", "FAILED"))

    def test_a_forked_process_does_not_stop_the_worker(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        worker = self.worker(
            endpoint,
            "import multiprocessing\n"
            "def handler(job):\n"
            "    child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
            "    child.start()\n    time.sleep(0.2)\n"
            "    child.terminate()\n    child.join(5)\n    return child.exitcode\n",
        )
        self.assertEqual([self.result(endpoint, {})["output"] for _ in range(2)], [-15, -15])
        self.assertNotIn("The worker stops", worker.log)

    def test_a_failed_fitness_check_ends_the_worker(self: WorkerCase) -> None:  # type: ignore[misc]
        worker = self.worker(
            self.endpoint(),
            "@runpod.serverless.register_fitness_check\n"
            "async def disk():\n    raise RuntimeError('no disk')\n"
            "def handler(job): pass\n",
        )
        self.assertEqual(worker.process.wait(15), 1)
        self.assertIn("the fitness check disk failed: RuntimeError: no disk", worker.log)

    def test_a_blocked_interpreter_is_not_taken_for_dead(self: WorkerCase) -> None:  # type: ignore[misc]
        """
        `PyDLL` keeps the interpreter lock, so no thread of the worker runs for longer than a silent worker
        lives.
        """
        endpoint = self.endpoint()
        worker = self.worker(
            endpoint,
            "import ctypes\nruns = 0\n"
            "def handler(job):\n    global runs\n    runs += 1\n"
            "    print('blocking', flush=True)\n"
            "    ctypes.PyDLL(None).sleep(38)\n    return runs\n",
        )
        job = self.berth.run(endpoint, {})
        worker.wait_log("blocking")
        self.worker(endpoint, "def handler(job):\n    return 'another worker got it'\n")
        self.assertEqual(self.berth.wait(endpoint, job, 60)["output"], 1)


class LifecycleOverTheChannel(Lifecycle, WorkerCase):
    channel = "fast"


class LifecycleByThePublicProtocol(Lifecycle, WorkerCase):
    channel = "public"


if __name__ == "__main__":
    unittest.main()
