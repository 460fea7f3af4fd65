"""What a test started ends with it, however the test ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from process_guard import processes_below

STARTS_A_WORKER = """
import sys, tempfile, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from berth_server import WorkerProcess
from process_guard import guard

folder = Path(tempfile.mkdtemp(prefix="berth-guard-"))
guard(folder)
# The worker has a helper of its own, as that of the public SDK does, and hears no signal but the last one.
worker = WorkerProcess('''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
print("up", flush=True)
time.sleep(600)
''', {}, folder)
worker.wait_log("up\\nup")
print(folder, flush=True)
time.sleep(600)
"""


@unittest.skipUnless(Path("/proc/self/cwd").exists(), "processes are found in /proc")
class Guard(unittest.TestCase):
    def test_nothing_outlives_a_test_that_is_killed(self) -> None:
        for ending in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            test = subprocess.Popen(
                [sys.executable, "-c", STARTS_A_WORKER, str(Path(__file__).parent)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert test.stdout is not None
            folder = Path(test.stdout.readline().strip())
            self.assertEqual(len(processes_below(folder)), 2)
            test.send_signal(ending)
            test.wait(10)
            test.stdout.close()
            deadline = time.monotonic() + 10
            while folder.exists() or processes_below(folder):
                self.assertLess(time.monotonic(), deadline, f"after {ending.name} processes live on")
                time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
