"""
Several jobs in one answer to job-take, with the real public SDK; see test_acceleration.py for
BERTH_SDK_PYTHONS.
"""

from __future__ import annotations

import time
import unittest

from berth_server import WorkerProcess
from test_acceleration import PYTHONS
from worker_case import WorkerCase, end

HANDLER = """
import time
import runpod

def handler(job):
    time.sleep(job["input"].get("seconds", 0))
    return job["input"]["n"]

runpod.serverless.start({"handler": handler})
"""


@unittest.skipUnless(PYTHONS, "no Python with the runpod package: set BERTH_SDK_PYTHONS")
class TakeAhead(WorkerCase):
    def unchanged_worker(self, endpoint: str, name: str) -> WorkerProcess:
        worker = WorkerProcess(
            HANDLER,
            self.berth.worker_env(endpoint, name),
            self.berth.folder,
            python=PYTHONS[0],
            with_sources=False,
        )
        self.addCleanup(end, worker)
        return worker

    def test_short_jobs_come_several_at_a_time(self) -> None:
        endpoint = self.endpoint()
        jobs = [self.berth.run(endpoint, {"n": n}) for n in range(200)]
        self.unchanged_worker(endpoint, "w")
        self.berth.wait(endpoint, jobs[0], 60)
        begun = time.monotonic()
        ended = [self.berth.wait(endpoint, job, 60) for job in jobs]
        # One job an answer takes more than 200 seconds.
        self.assertLess(time.monotonic() - begun, 40)
        self.assertEqual([job["output"] for job in ended], list(range(200)))
        # The time in the worker's own queue is delay, not execution: the median of no-op jobs is far below a
        # batch's time.
        self.assertLess(sorted(job["executionTime"] for job in ended)[100], 100)

    def test_what_a_lost_worker_had_not_started_costs_no_retry(self) -> None:
        endpoint = self.endpoint(maxRetries=0)
        worker = self.unchanged_worker(endpoint, "lost")
        for n in range(6):
            self.berth.wait(endpoint, self.berth.run(endpoint, {"n": n}), 60)
        # Several wait when the worker asks next, and it takes some of them together. The first holds it up.
        jobs = [self.berth.run(endpoint, {"n": n, "seconds": 60 if n == 0 else 0}) for n in range(4)]
        self.berth.wait(endpoint, jobs[0], 20, until=("IN_PROGRESS",))
        time.sleep(1)
        taken = [self.berth.status(endpoint, job)["status"] for job in jobs].count("IN_PROGRESS")
        self.assertGreater(taken, 1)
        worker.kill()
        self.unchanged_worker(endpoint, "next")
        ended = [self.berth.wait(endpoint, job, 120) for job in jobs]
        self.assertEqual([job["status"] for job in ended], ["FAILED", "COMPLETED", "COMPLETED", "COMPLETED"])


if __name__ == "__main__":
    unittest.main()
