"""Runs a handler without a platform: once on a test input, or for the local HTTP server."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .log import RunPodLogger

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import Job
    from .one_shot_event import OneShotEvent
    from .result import ResultFormat

INPUT_FILE = "test_input.json"


class LocalRun(NamedTuple):
    """What came of one run."""

    result: dict[str, Any]
    chunks: list[Any]
    streamed: bool


class _LocalDelivery:
    """Keeps what would be sent."""

    def __init__(self, job: Job, show: Callable[[str], object]) -> None:
        self.job = job
        self._show = show
        self.chunks: list[Any] = []
        self.result: dict[str, Any] = {}
        self.streamed = False

    def progress(self, value: bytes) -> None:
        self._show(f"Progress: {value.decode()}")

    def chunk(self, body: bytes) -> OneShotEvent | None:
        self.chunks.append(json.loads(body)["output"])
        self._show(f"Chunk: {body.decode()}")
        return None

    def finish(self, body: bytes, streamed: bool) -> OneShotEvent | None:
        self.result = json.loads(body)
        self.streamed = streamed
        return None

    def return_job(self) -> bool:
        return False

    def waited(self, seconds: float) -> None:
        pass

    def drop(self) -> None:
        pass


def run_once(
    handler: Callable[[Any], Any],
    job: Job,
    format: ResultFormat,
    show: Callable[[str], object] = lambda text: None,
) -> LocalRun:
    """Runs the handler on one job in the calling thread."""
    import threading

    from .completion import Completion
    from .handler_kind import is_async
    from .loop_executor import LoopExecutor
    from .running_jobs import RunningJobs
    from .thread_executor import ThreadExecutor
    from .timers import Timers

    log = RunPodLogger()
    lock = threading.RLock()
    nothing: Callable[[], object] = lambda: None
    exit_codes: list[int] = []
    jobs = RunningJobs(
        lock=lock,
        timers=Timers(log.error),
        log=log,
        cancel_grace_seconds=5.0,
        on_room=nothing,
        on_less_room=nothing,
        on_change=nothing,
    )
    completion = Completion(jobs, format, log, on_refresh=nothing, on_exit=exit_codes.append)
    executor: Any = (LoopExecutor if is_async(handler) else ThreadExecutor)(handler, jobs, completion, lock)
    jobs.executor = executor
    delivery = _LocalDelivery(job, show)
    jobs.deliver([delivery])

    def close_when_idle() -> None:
        jobs.wait_idle()
        executor.close()

    threading.Thread(target=close_when_idle, daemon=True).start()
    executor.run_until_closed()
    if exit_codes:
        sys.exit(exit_codes[0])
    return LocalRun(delivery.result, delivery.chunks, delivery.streamed)


def run_test_input(handler: Callable[[Any], Any], rp_args: dict[str, Any], format: ResultFormat) -> None:
    """
    Runs the job of `--test_input` or of test_input.json, prints its result, and ends the process with 0 or 1.
    """
    log = RunPodLogger()
    job = _test_job(rp_args.get("test_input"), log)
    run = run_once(handler, job, format, log.info)
    if run.result.get("error"):
        log.error(f"Job {job['id']} failed with error: {run.result['error']}")
        sys.exit(1)
    result = {**run.result, "output": run.chunks} if run.streamed else run.result
    log.info(f"Job {job['id']} completed successfully.")
    log.info(f"Job result: {result}")
    expected = rp_args.get("test_output")
    if expected is not None and result != expected:
        log.error("Job output does not match test_output.")
        sys.exit(1)
    log.info("Local testing complete, exiting.")
    sys.exit(0)


def _test_job(given: Any, log: RunPodLogger) -> Job:
    if given is None:
        if not os.path.exists(INPUT_FILE):
            log.warn(
                "There is no platform to take jobs from (RUNPOD_WEBHOOK_GET_JOB is not set), "
                f"and nothing to try: give --test_input '{{\"input\": …}}' or write {INPUT_FILE}."
            )
            sys.exit(1)
        log.info(f"Using {INPUT_FILE} as job input.")
        try:
            with open(INPUT_FILE, encoding="utf-8") as file:
                given = json.load(file)
        except (OSError, ValueError) as error:
            log.error(f"{INPUT_FILE} cannot be read: {error}")
            sys.exit(1)
    if not isinstance(given, dict) or given.get("input") is None:
        log.error('Job has no input parameter. Unable to run: it has to be {"input": …}.')
        sys.exit(1)
    return {"id": "local_test", **given}
