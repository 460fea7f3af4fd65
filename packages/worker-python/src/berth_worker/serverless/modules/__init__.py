"""The modules of the public SDK that handlers import from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from . import rp_fitness, rp_handler, rp_logger, rp_progress

__all__ = ["rp_fitness", "rp_handler", "rp_logger", "rp_progress"]

__getattr__ = lazy_names(__name__, ("rp_fitness", "rp_handler", "rp_logger", "rp_progress"))
