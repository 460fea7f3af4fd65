"""What the platform tells a worker, under the names of the public worker protocol."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .public.urls import Urls

if TYPE_CHECKING:
    from collections.abc import Mapping

PING_SECONDS = 10.0
SHORTEST_PING_SECONDS = 0.1
LONGEST_PING_SECONDS = 3600.0


class Environment:
    """The identity, the key and the URLs of this worker."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        env = os.environ if variables is None else variables
        self.worker_id = env.get("RUNPOD_POD_ID") or _random_id()
        self.hostname = env.get("RUNPOD_POD_HOSTNAME", "unknown")
        self.api_key = _api_key(env)
        self.ping_seconds = _ping_seconds(env.get("RUNPOD_PING_INTERVAL"))
        self.urls = Urls(
            take=_url(env, "RUNPOD_WEBHOOK_GET_JOB"),
            done=_url(env, "RUNPOD_WEBHOOK_POST_OUTPUT"),
            stream=_optional_url(env, "RUNPOD_WEBHOOK_POST_STREAM"),
            ping=_optional_url(env, "RUNPOD_WEBHOOK_PING"),
            worker_id=self.worker_id,
        )


def is_local(variables: Mapping[str, str] | None = None) -> bool:
    """Without a URL to take jobs from there is no platform around this worker."""
    return "RUNPOD_WEBHOOK_GET_JOB" not in (os.environ if variables is None else variables)


def _random_id() -> str:
    import uuid

    return str(uuid.uuid4())


def _api_key(env: Mapping[str, str]) -> str:
    value = env.get("RUNPOD_AI_API_KEY", "")
    if any(ord(char) < 32 or ord(char) in (127,) or ord(char) > 255 for char in value):
        raise ValueError(
            "RUNPOD_AI_API_KEY has a character, perhaps a line break at its end, "
            "that cannot be sent in a header"
        )
    return value


def _ping_seconds(text: str | None) -> float:
    try:
        seconds = float(text) / 1000 if text else PING_SECONDS
    except ValueError:
        return PING_SECONDS
    if not seconds > 0:
        return PING_SECONDS
    return min(LONGEST_PING_SECONDS, max(SHORTEST_PING_SECONDS, seconds))


def _optional_url(env: Mapping[str, str], name: str) -> str | None:
    return _url(env, name) if env.get(name) else None


def _url(env: Mapping[str, str], name: str) -> str:
    value = env.get(name)
    if value is None:
        raise ValueError(f"{name} is not set; the platform sets it together with RUNPOD_WEBHOOK_GET_JOB")
    if not value.lower().startswith(("http://", "https://")):
        raise ValueError(f'{name} is "{value}"; it has to be an http or https URL')
    return value
