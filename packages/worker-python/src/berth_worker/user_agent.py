"""How this worker names itself in requests."""

from __future__ import annotations

import sys

from .version import __version__

#: Set by the acceleration hook: which public SDK runs the handler.
accelerated_sdk: str | None = None


def user_agent() -> str:
    """
    `accelerated runpod/<version>` in the comment says that a hook put this transport under the public SDK.
    """
    comment = (
        sys.platform if accelerated_sdk is None else f"{sys.platform}; accelerated runpod/{accelerated_sdk}"
    )
    python = ".".join(str(number) for number in sys.version_info[:3])
    return f"berth-worker-python/{__version__} ({comment}) python/{python}"
