"""
A worker in Python, to be killed and frozen. What it does it writes to a file, before it does it: a line that
was written outlives the process, however that ends.
"""

import itertools
import json
import os
import sys
import threading
import time

if os.environ["WORKER_SDK"] == "runpod":
    import runpod
else:
    import berth_worker as runpod

RUN, CONCURRENCY, FILE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
del sys.argv[1:]
attempts = itertools.count(1)
notes = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def report(**event):
    event["at"] = time.clock_gettime(time.CLOCK_MONOTONIC) * 1000
    os.write(notes, (json.dumps(event) + "\n").encode())


def handler(job):
    input = job["input"]
    marker = f"{RUN}/{next(attempts)}"
    report(kind="execution", id=job["id"], value=input["value"], marker=marker)
    if input["progress"]:
        runpod.serverless.progress_update(job, {"marker": marker, "done": True})
    time.sleep(input["milliseconds"] / 1000)
    said = {"value": input["value"], "marker": marker}
    text = json.dumps(said, separators=(",", ":"))
    report(
        kind="result",
        id=job["id"],
        marker=marker,
        output=None if input["fails"] else text,
        error=text if input["fails"] else None,
    )
    return {"error": said} if input["fails"] else said


def end_with_the_test():
    os.read(0, 1)
    os._exit(0)


threading.Thread(target=end_with_the_test, daemon=True).start()
config = {"handler": handler}
if CONCURRENCY > 1:
    config["concurrency_modifier"] = lambda current: CONCURRENCY
runpod.serverless.start(config)
