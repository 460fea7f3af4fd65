"""The names of the public SDK's `runpod.serverless`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..fitness import register_fitness_check
from ..log import RunPodLogger
from ..progress import progress_update
from ..start import start
from ..version import __version__ as runpod_version
from . import modules, utils

if TYPE_CHECKING:
    from .utils.rp_volume_cache import VolumeCache

__all__ = [
    "VolumeCache",
    "modules",
    "progress_update",
    "register_fitness_check",
    "runpod_version",
    "start",
    "utils",
]

log = RunPodLogger()


def __getattr__(name: str) -> Any:
    if name == "VolumeCache":
        from .utils.rp_volume_cache import VolumeCache

        return VolumeCache
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
