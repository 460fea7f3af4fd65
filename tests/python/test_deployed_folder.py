"""A folder that is deployed with a handler.py, on the process engine."""

from __future__ import annotations

import base64
import time
import unittest

from worker_case import WorkerCase

HANDLER = """
import sys
import berth_worker as runpod

def handler(job):
    if job["input"].get("exit"):
        sys.exit(3)
    return job["input"]["n"]

runpod.serverless.start({"handler": handler})
"""


class DeployedFolder(WorkerCase):
    def test_the_sdk_needs_no_requirements(self) -> None:
        """And a handler that exits fails its job only: the next worker runs the next one."""
        files = [{"path": "handler.py", "data": base64.b64encode(HANDLER.encode()).decode()}]
        status, answer = self.berth.request("POST", "/v2/images", {"name": "plain", "files": files})
        self.assertEqual(status, 201, answer)
        endpoint = self.endpoint(image=answer["image"], workers={"min": 0, "max": 1})
        self.assertEqual(self.result(endpoint, {"n": 1}, 60)["output"], 1)
        failed = self.result(endpoint, {"exit": True}, 60)
        self.assertEqual(failed["status"], "FAILED")
        self.assertIn("the handler ended the process with exit code 3", failed["error"])
        self.assertEqual(self.result(endpoint, {"n": 2}, 60)["output"], 2)
        # The worker that exited is listed until its end has been noticed.
        listed: list[bool] = []
        end = time.monotonic() + 20
        while listed != [True] and time.monotonic() < end:
            workers = self.berth.request("GET", f"/v2/serverless/{endpoint}/workers")[1]["workers"]
            listed = [worker["accelerated"] for worker in workers]
            time.sleep(0.05)
        self.assertEqual(listed, [True])


if __name__ == "__main__":
    unittest.main()
