"""
Connections that are cut in every state, a server that is killed or frozen, a server without the channel.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
import unittest

from worker_case import WorkerCase

ECHO = "def handler(job):\n    time.sleep(job['input'].get('sleep', 0))\n    return job['input']['n']\n"
STREAM = """
def handler(job):
    for number in range(job["input"]["count"]):
        time.sleep(job["input"].get("sleep", 0))
        yield number
"""


class Faults:
    """The same tests for both protocols."""

    def test_connections_that_are_cut_lose_nothing(self: WorkerCase) -> None:  # type: ignore[misc]
        proxy = self.proxy()
        endpoint = self.endpoint()
        worker = self.worker(endpoint, ECHO, base=proxy.url)
        stop = threading.Event()

        def cut() -> None:
            while not stop.wait(random.uniform(0.02, 0.6)):
                proxy.cut()

        cutting = threading.Thread(target=cut)
        cutting.start()
        try:
            jobs = [
                self.berth.run(endpoint, {"n": n, "sleep": random.choice((0, 0, 0, 0.01))})
                for n in range(600)
            ]
            time.sleep(5)
        finally:
            stop.set()
            cutting.join()
        for n, job in enumerate(jobs):
            done = self.berth.wait(endpoint, job, 120)
            self.assertEqual(
                (done["status"], done.get("output")), ("COMPLETED", n), f"{done}\n{worker.log[-2000:]}"
            )
        self.assertEqual(worker.stop(30), 0)
        self.assertGreater(proxy.opened, 5)

    def test_streams_survive_cut_connections(self: WorkerCase) -> None:  # type: ignore[misc]
        proxy = self.proxy()
        endpoint = self.endpoint()
        self.worker(endpoint, STREAM, base=proxy.url)
        job = self.berth.run(endpoint, {"count": 150, "sleep": 0.02})
        for _ in range(5):
            time.sleep(0.5)
            proxy.cut()
        chunks = self.berth.stream(endpoint, job, 120)
        if self.channel == "fast":
            self.assertEqual(chunks, list(range(150)))
        else:
            # By the public protocol a chunk whose acknowledgement was cut off may arrive twice, but in order.
            self.assertEqual(list(dict.fromkeys(chunks)), list(range(150)))
        self.assertEqual(self.berth.status(endpoint, job)["status"], "COMPLETED")

    def test_a_server_that_is_killed_and_comes_back(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        worker = self.worker(endpoint, ECHO)
        jobs = [self.berth.run(endpoint, {"n": n, "sleep": 0.01}) for n in range(300)]
        for _ in range(2):
            time.sleep(0.4)
            self.berth.kill()
            time.sleep(0.3)
            self.berth.start()
        for n, job in enumerate(jobs):
            done = self.berth.wait(endpoint, job, 120)
            self.assertEqual(
                (done["status"], done.get("output")), ("COMPLETED", n), f"{done}\n{worker.log[-2000:]}"
            )
        self.assertEqual(worker.stop(30), 0)

    def test_a_worker_that_is_killed_loses_nothing(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        jobs = [self.berth.run(endpoint, {"n": n, "sleep": 0.005}) for n in range(400)]
        first = self.worker(endpoint, ECHO)
        for job in jobs[:20]:
            self.berth.wait(endpoint, job)
        first.process.kill()
        first.process.wait()
        self.worker(endpoint, ECHO)
        for n, job in enumerate(jobs):
            done = self.berth.wait(endpoint, job, 120)
            self.assertEqual((done["status"], done.get("output")), ("COMPLETED", n))

    def test_a_frozen_worker_is_replaced(self: WorkerCase) -> None:  # type: ignore[misc]
        """Its helper process must not say that it lives."""
        endpoint = self.endpoint()
        frozen = self.worker(endpoint, ECHO)
        job = self.berth.run(endpoint, {"n": 7, "sleep": 2})
        frozen.wait_log("Started.")
        os.kill(frozen.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, frozen.process.pid, signal.SIGCONT)
        self.worker(endpoint, ECHO)
        self.assertEqual(self.berth.wait(endpoint, job, 90)["output"], 7)

    def test_nothing_is_left_when_a_worker_is_killed(self: WorkerCase) -> None:  # type: ignore[misc]
        endpoint = self.endpoint()
        worker = self.worker(endpoint, ECHO)
        self.assertEqual(self.result(endpoint, {"n": 1})["output"], 1)
        time.sleep(0.5)
        helpers = _children(worker.process.pid)
        self.assertEqual(len(helpers), 1)
        worker.process.kill()
        worker.process.wait()
        deadline = time.monotonic() + 10
        while any(os.path.exists(f"/proc/{pid}") for pid in helpers):
            self.assertLess(time.monotonic(), deadline, "the helper process lives on")
            time.sleep(0.05)


def _children(process: int) -> list[str]:
    return subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True
    ).stdout.split()


class FaultsOverTheChannel(Faults, WorkerCase):
    channel = "fast"

    def test_a_server_without_the_channel_is_used_by_the_public_protocol(self) -> None:
        self.channel = "auto"
        proxy = self.proxy(hide_channel=True)
        endpoint = self.endpoint()
        worker = self.worker(endpoint, ECHO, base=proxy.url)
        self.assertEqual([self.result(endpoint, {"n": n})["output"] for n in range(5)], list(range(5)))
        self.assertIn("jobs come by the public protocol", worker.log)
        self.assertEqual(proxy.channels, 1)
        self.assertEqual(worker.stop(), 0)

    def test_a_channel_that_goes_away_and_comes_back(self) -> None:
        """A running job ends by HTTP, and jobs come over the channel again later."""
        self.channel = "auto"
        proxy = self.proxy()
        endpoint = self.endpoint()
        quick = "import berth_worker.timings\nberth_worker.timings.Timings.upgrade_again = 1.0\n"
        worker = self.worker(endpoint, quick + STREAM, base=proxy.url)
        job = self.berth.run(endpoint, {"count": 100, "sleep": 0.02})
        time.sleep(1)
        proxy.hide_channel = True
        proxy.cut()
        self.assertEqual(self.berth.stream(endpoint, job, 60), list(range(100)))
        self.assertEqual(self.berth.status(endpoint, job)["status"], "COMPLETED")
        proxy.hide_channel = False
        worker.wait_log("The server offers its channel again")
        self.assertEqual(self.berth.stream(endpoint, self.berth.run(endpoint, {"count": 5})), list(range(5)))
        self.assertEqual(worker.stop(), 0)

    def test_a_result_that_the_server_refuses_as_too_large(self) -> None:
        endpoint = self.endpoint()
        self.worker(endpoint, "def handler(job):\n    return 'x' * job['input']['size']\n")
        failed = self.result(endpoint, {"size": 80_000_000}, 120)
        self.assertEqual(failed["status"], "FAILED", str(failed)[:300])
        self.assertEqual(self.result(endpoint, {"size": 3})["output"], "xxx")

    def test_the_server_may_come_after_the_worker(self) -> None:
        endpoint = self.endpoint()
        self.berth.kill()
        worker = self.worker(endpoint, ECHO)
        worker.wait_log("There is no connection to the server")
        self.berth.start()
        self.assertEqual(self.result(endpoint, {"n": 3})["output"], 3)


class FaultsByThePublicProtocol(Faults, WorkerCase):
    channel = "public"


if __name__ == "__main__":
    unittest.main()
