"""Fits a line to points, with a checkpoint on the volume after every pass: stop the pod, start it, and it goes on."""

import json
import os
import random
import sys
import time
from pathlib import Path

PASSES = 50
RATE = 0.05
VOLUME = Path(sys.argv[1] if len(sys.argv) > 1 else "/workspace")
CHECKPOINT = VOLUME / "checkpoint.json"

chance = random.Random(1)
POINTS = [(x, 3 * x + 2 + chance.gauss(0, 0.1)) for x in (chance.uniform(-1, 1) for _ in range(200))]


def load() -> dict:
    """The last checkpoint, or the start."""
    if CHECKPOINT.exists():
        return json.loads(CHECKPOINT.read_text())
    return {"step": 0, "slope": 0.0, "offset": 0.0}


def save(state: dict) -> None:
    """Written beside it and renamed: a pod that is stopped in the middle leaves a whole file."""
    fresh = CHECKPOINT.with_suffix(".new")
    fresh.write_text(json.dumps(state))
    os.replace(fresh, CHECKPOINT)


state = load()
print(f"starting after pass {state['step']}", flush=True)
while state["step"] < PASSES:
    for x, y in POINTS:
        error = state["slope"] * x + state["offset"] - y
        state["slope"] -= RATE * error * x
        state["offset"] -= RATE * error
    state["step"] += 1
    save(state)
    time.sleep(0.01)
print(f"done: y = {state['slope']:.1f} x + {state['offset']:.1f}", flush=True)
