"""A worker that is written for the runpod package, unchanged."""

import runpod


def handler(job):
    """Returns what it was given, upside down where it is text."""
    message = job["input"].get("message", "")
    print(f"job {job['id']}: {message}")
    return {"message": message, "reversed": message[::-1]}


runpod.serverless.start({"handler": handler})
