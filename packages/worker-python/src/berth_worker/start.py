"""The entry of a worker: from its configuration to what it does here."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .environment import is_local
from .log import RunPodLogger
from .rp_args import parse_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from .result import ResultFormat

Handler = TypeVar("Handler", bound="Callable[[Any], Any]")
_IMPORTED_AT = time.perf_counter()


def start(config: dict[str, Any]) -> None:
    """
    Runs the worker of `config["handler"]`: takes jobs from the platform, or, without one, runs the handler on
    a test input or serves it on this machine. Returns when the worker was stopped.
    """
    handler = config.get("handler")
    if not callable(handler):
        raise TypeError('start() needs {"handler": function}')
    config["reference_counter_start"] = time.perf_counter()
    config["rp_args"] = args = parse_args()
    log = RunPodLogger()
    if args["rp_log_level"]:
        log.set_level(args["rp_log_level"])
    format = _format(config)
    realtime_port = int(os.environ.get("RUNPOD_REALTIME_PORT") or 0)
    if args["rp_serve_api"] or realtime_port:
        from .dev_server import serve_api

        if args["rp_serve_api"]:
            serve_api(
                handler,
                format,
                host=args["rp_api_host"],
                port=args["rp_api_port"],
                concurrency=args["rp_api_concurrency"],
            )
        else:
            concurrency = int(os.environ.get("RUNPOD_REALTIME_CONCURRENCY") or 1)
            serve_api(handler, format, host="0.0.0.0", port=realtime_port, concurrency=concurrency)
    elif args["test_input"] is not None or is_local():
        from .local_run import run_test_input

        run_test_input(handler, args, format)
    else:
        _work(handler, config, format)


def _work(handler: Callable[[Any], Any], config: dict[str, Any], format: ResultFormat) -> None:
    from .worker import Worker

    worker = Worker(
        handler,
        format=format,
        concurrency=config.get("concurrency", 1),
        concurrency_modifier=config.get("concurrency_modifier"),
        channel=config.get("channel") or os.environ.get("BERTH_WORKER_CHANNEL") or "auto",
    )
    code = worker.run()
    if code != 0:
        sys.exit(code)


def _format(config: dict[str, Any]) -> ResultFormat:
    from .result import ResultFormat

    def debugger() -> dict[str, Any]:
        from .serverless.utils.rp_debugger import get_debugger_output

        return {
            **get_debugger_output(),
            "ready_delay_ms": (config["reference_counter_start"] - _IMPORTED_AT) * 1000,
        }

    is_debugged = bool(config["rp_args"].get("rp_debugger"))
    return ResultFormat(
        refresh_worker=bool(config.get("refresh_worker")),
        aggregate=bool(config.get("return_aggregate_stream")),
        debugger=debugger if is_debugged else None,
        after_job=None if is_debugged else _clear_timings,
    )


def _clear_timings() -> None:
    """What a job measured is not kept for the next one."""
    module = sys.modules.get(f"{__package__}.serverless.utils.rp_debugger")
    if module is not None:
        module.clear_debugger_output()


class Registered:
    """The handler that a decorator named."""

    handler: Callable[[Any], Any] | None = None
    options: dict[str, Any] = {}


@overload
def handler(function: Handler) -> Handler: ...
@overload
def handler(**options: Any) -> Callable[[Handler], Handler]: ...
def handler(function: Any = None, **options: Any) -> Any:
    """
    Decorator: names the function as the handler of this worker. `berth_worker.run()` at the end of the file
    starts it. Options are those of `start`: `concurrency`, `concurrency_modifier`, `return_aggregate_stream`,
    `refresh_worker`, `channel`.
    """

    def register(decorated: Handler) -> Handler:
        if Registered.handler is not None and Registered.handler is not decorated:
            raise RuntimeError("this worker has a handler already; a worker has one")
        Registered.handler = decorated
        Registered.options = options
        return decorated

    return register if function is None else register(function)


def run() -> None:
    """Starts the worker of the function that `@berth_worker.handler` names."""
    if Registered.handler is None:
        raise RuntimeError("no function is decorated with @berth_worker.handler")
    start({"handler": Registered.handler, **Registered.options})
