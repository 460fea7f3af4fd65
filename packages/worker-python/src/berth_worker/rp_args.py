"""The arguments that a worker takes from the command line. Others stay in `sys.argv`."""

from __future__ import annotations

import json
import sys
from typing import Any


def parse_args() -> dict[str, Any]:
    """Reads and removes the known arguments."""
    if not any(word.startswith("--") for word in sys.argv[1:]):
        return {
            "rp_log_level": None,
            "rp_debugger": None,
            "rp_serve_api": None,
            "rp_api_port": 8000,
            "rp_api_concurrency": 1,
            "rp_api_host": "localhost",
            "test_input": None,
            "test_output": None,
        }
    import argparse

    parser = argparse.ArgumentParser(prog=sys.argv[0], description="Arguments of a serverless worker.")
    parser.add_argument(
        "--rp_log_level",
        default=None,
        help="from which level on lines are printed: ERROR, WARN, INFO or DEBUG",
    )
    parser.add_argument(
        "--rp_debugger",
        action="store_true",
        default=None,
        help="add the timings of rp_debugger to each output",
    )
    parser.add_argument(
        "--rp_serve_api",
        action="store_true",
        default=None,
        help="serve the handler over HTTP on this machine",
    )
    parser.add_argument(
        "--rp_api_port", type=int, default=8000, help="the port of that server (default: 8000)"
    )
    parser.add_argument(
        "--rp_api_concurrency",
        type=int,
        default=1,
        help="how many jobs that server runs at a time (default: 1)",
    )
    parser.add_argument(
        "--rp_api_host", default="localhost", help="the address of that server (default: localhost)"
    )
    parser.add_argument(
        "--test_input", type=_json, default=None, help='run one job and print its result: {"input": …}'
    )
    parser.add_argument(
        "--test_output", type=_json, default=None, help="the result that the test job has to have"
    )
    args, unknown = parser.parse_known_args()
    sys.argv = [sys.argv[0], *unknown]
    return vars(args)


def _json(text: str) -> Any:
    import argparse

    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
