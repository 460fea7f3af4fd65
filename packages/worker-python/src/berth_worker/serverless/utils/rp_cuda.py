"""Whether there is a CUDA GPU, without importing torch."""

from __future__ import annotations

import subprocess

__all__ = ["is_available"]

TIMEOUT_SECONDS = 30


def is_available() -> bool:
    """True where nvidia-smi runs and finds the driver."""
    try:
        output = subprocess.run(
            ["nvidia-smi"], capture_output=True, check=True, timeout=TIMEOUT_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return b"NVIDIA-SMI" in output
