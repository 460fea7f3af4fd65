"""Removes what a job has left in the working directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["clean"]

FOLDERS = ("input_objects", "output_objects", "job_files")


def clean(folder_list: Iterable[str] | None = None) -> None:
    """Removes the folders that the download helpers use, and those that are given."""
    for folder in (*FOLDERS, *(folder_list or ())):
        shutil.rmtree(folder, ignore_errors=True)
    Path("output.zip").unlink(missing_ok=True)
