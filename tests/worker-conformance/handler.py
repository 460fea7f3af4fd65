"""The handlers of the conformance suite for Python; handler.ts has the same for the TypeScript SDK."""

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
import time

if os.environ["WORKER_SDK"] == "runpod":
    import runpod
else:
    import berth_worker as runpod

SETTINGS = json.loads(os.environ["CONFORMANCE"])
UNSENDABLE = {"data": b"x"}


def note_run(job):
    if "runs" in job["input"]:
        with open(job["input"]["runs"], "a") as runs:
            runs.write(job["id"] + "\n")


def plain(job):
    note_run(job)
    input = job["input"]
    match input["do"]:
        case "echo":
            return input["value"]
        case "nothing":
            return None
        case "raise":
            raise ValueError("broken on purpose")
        case "error":
            return {"error": "no good", "extra": 1}
        case "unsendable":
            return UNSENDABLE
        case "circle":
            value = []
            value.append(value)
            return value
        case "print":
            for _ in range(input["megabytes"]):
                print("x" * 2**20)
            return "printed"
        case "progress":
            runpod.serverless.progress_update(job, {"at": 1})
            file_exists(input["until"])
            return "done"
        case "wait":
            print(input.get("says", "running"), flush=True)
            file_exists(input["until"])
            return input["value"]
        case "block":
            # `PyDLL` keeps the interpreter lock, so that no thread of the worker runs.
            ctypes.PyDLL(None).usleep(int(input["seconds"] * 1_000_000) % 1_000_000)
            ctypes.PyDLL(None).sleep(int(input["seconds"]))
            return "unblocked"
        case "refresh":
            return {"a": 1, "refresh_worker": True}
        case "exit":
            sys.exit(3)
        case "die":
            if os.path.exists(input["until"]):
                return "survived"
            open(input["until"], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


async def cancellable(job):
    if job["input"]["do"] != "cancel":
        return plain(job)
    print("running", flush=True)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("saw the cancellation", flush=True)
        raise


def stream(job):
    note_run(job)
    input = job["input"]
    try:
        for number in range(input["count"]):
            if number == input.get("raiseAt"):
                raise RuntimeError("stream broken")
            if number == input.get("errorAt"):
                yield {"error": "no more"}
            if number == input.get("unsendableAt"):
                yield UNSENDABLE
            yield number
            if number == 0 and "says" in input:
                print(input["says"], flush=True)
            if "pauseMs" in input:
                time.sleep(input["pauseMs"] / 1000)
    finally:
        if "closed" in input:
            print(input["closed"], flush=True)
        if input.get("stubborn"):
            yield "after the end"


def file_exists(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def end_with_the_test():
    os.read(0, 1)
    os._exit(0)


threading.Thread(target=end_with_the_test, daemon=True).start()
runpod.serverless.start(
    {
        "handler": {"plain": plain, "cancellable": cancellable, "stream": stream}[SETTINGS["handler"]],
        "return_aggregate_stream": SETTINGS.get("aggregate", False),
    }
)
