"""Answers how long it waited for its first job after it was loaded, in milliseconds. SDK names its SDK."""

import importlib
import os
import time

sdk = importlib.import_module(os.environ["SDK"])
loaded_at = 0.0


def handler(job):
    """The first job of the process is the one that is measured."""
    return (time.monotonic() - loaded_at) * 1000


start = sdk.start if hasattr(sdk, "start") else sdk.serverless.start
loaded_at = time.monotonic()
start({"handler": handler})
