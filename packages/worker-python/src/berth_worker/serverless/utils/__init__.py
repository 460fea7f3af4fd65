"""Helpers that handlers commonly import. Each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from . import rp_cleanup, rp_cuda, rp_debugger, rp_download, rp_upload, rp_validator, rp_volume_cache
    from .rp_download import download_files_from_urls
    from .rp_upload import upload_file_to_bucket, upload_in_memory_object
    from .rp_validator import validate
    from .rp_volume_cache import VolumeCache

__all__ = [
    "VolumeCache",
    "download_files_from_urls",
    "rp_cleanup",
    "rp_cuda",
    "rp_debugger",
    "rp_download",
    "rp_upload",
    "rp_validator",
    "rp_volume_cache",
    "upload_file_to_bucket",
    "upload_in_memory_object",
    "validate",
]

__getattr__ = lazy_names(
    __name__,
    ("rp_cleanup", "rp_cuda", "rp_debugger", "rp_download", "rp_upload", "rp_validator", "rp_volume_cache"),
    {
        "VolumeCache": "rp_volume_cache",
        "download_files_from_urls": "rp_download",
        "upload_file_to_bucket": "rp_upload",
        "upload_in_memory_object": "rp_upload",
        "validate": "rp_validator",
    },
)
