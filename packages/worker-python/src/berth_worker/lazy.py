"""Submodules that are imported when they are first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(
    package: str, modules: tuple[str, ...], functions: dict[str, str] | None = None
) -> Callable[[str], Any]:
    """A module `__getattr__`: `modules` are submodules of the package, `functions` names in one of them."""
    found = functions or {}

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name in found:
            return getattr(importlib.import_module(f"{package}.{found[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
