"""Puts this package's transport under the public SDK, for the versions that are known."""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Any

from .. import user_agent
from ..channel.upgrade import Opened, upgrade
from ..environment import Environment
from ..timings import Timings
from ..result import ResultFormat
from ..worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

OLDEST, NEWEST = (1, 7), (1, 12)
#: From this version on a stream that yields an error ends with it.
YIELDED_ERRORS = (1, 7, 7)
ROOT = "runpod.serverless"


def change(module: ModuleType) -> None:
    """
    Changes a module of the SDK that was just imported. Raises RuntimeError for an SDK that is not known,
    before it changes anything.
    """
    version = known_version()
    if module.__name__ == f"{ROOT}.worker":
        _change_worker(module, version)
    elif module.__name__ == f"{ROOT}.modules.rp_progress":
        _change_progress(module)


def known_version() -> str:
    version = str(getattr(sys.modules.get("runpod.version"), "__version__", "") or _installed_version())
    found = re.match(r"(\d+)\.(\d+)(?:\.|$)", version)
    if found is None or not OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        raise RuntimeError(
            f"runpod {version or 'of an unknown version'} is not known; "
            f"known are {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        )
    return version


def _installed_version() -> str:
    from importlib.metadata import version

    return version("runpod")


def _change_worker(module: Any, version: str) -> None:
    """
    `main(config)` is the same in all known versions. What it calls is not: before 1.7.3 `run_worker` is a
    coroutine function.
    """
    original = getattr(module, "main", None)
    if (
        original is None
        or not hasattr(module, "_is_local")
        or list(inspect.signature(original).parameters) != ["config"]
    ):
        raise RuntimeError(f"runpod {version} has another worker.main than the one that is known")

    def main(config: dict[str, Any]) -> None:
        if module._is_local(config):
            original(config)
        else:
            run_accelerated(module, original, config, version)

    main.__doc__ = original.__doc__
    module.main = main


def run_accelerated(
    module: Any, original: Callable[[dict[str, Any]], Any], config: dict[str, Any], version: str
) -> None:
    """Where the channel is not to be had, the SDK goes on as if nothing had been changed."""
    _run_fitness_checks(module)
    try:
        worker = _worker(config, version)
    except Exception as error:
        _say(error if isinstance(error, RuntimeError) else f"{type(error).__name__}: {error}")
        _run_original(module, original, config)
        return
    _log("info", f"This worker is accelerated: runpod {version} over Berth's channel.")
    code = worker.run()
    if code != 0:
        sys.exit(code)


def _worker(config: dict[str, Any], version: str) -> Worker:
    environment = Environment()
    url = environment.urls.channel
    if url is None:
        raise RuntimeError("RUNPOD_WEBHOOK_GET_JOB has no /job-take/")
    user_agent.accelerated_sdk = version
    timings = Timings()
    outcome = upgrade(url, environment.api_key, timings.upgrade)
    if not isinstance(outcome, Opened):
        user_agent.accelerated_sdk = None
        raise RuntimeError(f"the server does not offer its channel ({outcome.why})")
    try:
        return Worker(
            config["handler"],
            format=_format(config, version),
            concurrency_modifier=config.get("concurrency_modifier"),
            checks=lambda log: None,
            # The SDK runs plain functions on its event loop, so they never ran in parallel.
            one_at_a_time=True,
            first=outcome,
        )
    except BaseException:
        outcome.socket.close()
        raise


def _format(config: dict[str, Any], version: str) -> ResultFormat:
    from importlib import import_module

    rp_debugger = import_module(f"{ROOT}.utils.rp_debugger")
    begun = getattr(import_module(f"{ROOT}.modules.worker_state"), "REF_COUNT_ZERO", 0.0)

    def debugger() -> dict[str, Any]:
        return {
            **rp_debugger.get_debugger_output(),
            "ready_delay_ms": (config["reference_counter_start"] - begun) * 1000,
        }

    is_debugged = bool(config.get("rp_args", {}).get("rp_debugger"))
    return ResultFormat(
        refresh_worker=bool(config.get("refresh_worker")),
        aggregate=bool(config.get("return_aggregate_stream")),
        version_field=("runpod_version", version),
        debugger=debugger if is_debugged else None,
        after_job=None if is_debugged else rp_debugger.clear_debugger_output,
        yielded_errors=_numbers(version) >= YIELDED_ERRORS,
    )


def _numbers(version: str) -> tuple[int, ...]:
    """1.7.0.dev3 counts as 1.7.0."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _run_fitness_checks(module: Any) -> None:
    if hasattr(module, "run_fitness_checks"):
        import asyncio

        asyncio.run(module.run_fitness_checks())


def _run_original(module: Any, original: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> None:
    """The checks have passed already."""

    async def no_checks() -> None:
        pass

    if hasattr(module, "run_fitness_checks"):
        module.run_fitness_checks = no_checks
    original(config)


def _change_progress(module: Any) -> None:
    """Updates go over the channel while an accelerated worker runs, else as before."""
    original = module.progress_update

    def progress_update(job: dict[str, Any], progress: Any) -> None:
        from .. import worker

        if worker.active is None:
            original(job, progress)
            return
        from ..progress import progress_update as send

        send(job, progress)

    progress_update.__doc__ = original.__doc__
    module.progress_update = progress_update


def _say(why: object) -> None:
    _log("warn", f"berth: this worker is not accelerated: {why}")


def _log(level: str, message: str) -> None:
    from ..log import RunPodLogger

    getattr(RunPodLogger(), level)(message)
