"""Downloads files that a job's input names."""

from __future__ import annotations

import os
import time
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any
from urllib.parse import urlparse

from ...log import RunPodLogger
from .safe_url import Download, UnsafeUrl, open_url

__all__ = ["UnsafeUrl", "download_files_from_urls", "file"]

TRIES = 3
FILES_TIMEOUT_SECONDS = 5
FILE_TIMEOUT_SECONDS = 30


def download_files_from_urls(job_id: str, urls: str | list[str]) -> list[str | None]:
    """
    Downloads one address or a list of them below `jobs/<job_id>/downloaded_files`. Returns absolute paths;
    None for each that failed.
    """
    folder = os.path.abspath(os.path.join("jobs", job_id, "downloaded_files"))
    os.makedirs(folder, exist_ok=True)
    wanted = [urls] if isinstance(urls, str) else urls
    with ThreadPoolExecutor() as executor:
        return list(executor.map(lambda url: _download_into(folder, url), wanted))


def file(file_url: str) -> dict[str, Any]:
    """
    Downloads one file below `job_files` under a random name. A zip file is extracted beside it. Returns
    `file_path`, `type` (the extension), `original_name` and `extracted_path` (None for other files).
    """
    os.makedirs("job_files", exist_ok=True)
    name = str(uuid.uuid4())
    with open_url(file_url, FILE_TIMEOUT_SECONDS) as download:
        original_name = os.path.basename(download.file_name or urlparse(file_url).path)
        extension = os.path.splitext(original_name)[1].replace(".", "")
        path = os.path.join("job_files", f"{name}.{extension}")
        with open(path, "wb") as target:
            _copy(download, target)
    extracted = None
    if extension == "zip":
        extracted = os.path.abspath(os.path.join("job_files", name))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(extracted)
    return {
        "file_path": os.path.abspath(path),
        "type": extension,
        "original_name": original_name,
        "extracted_path": extracted,
    }


def _download_into(folder: str, url: str | None) -> str | None:
    if url is None:
        return None
    path = os.path.join(folder, str(uuid.uuid4()))
    for attempt in range(TRIES):
        try:
            with open_url(url, FILES_TIMEOUT_SECONDS) as download:
                extension = (
                    os.path.splitext(download.file_name or "")[1] or os.path.splitext(urlparse(url).path)[1]
                )
                with open(path + extension, "wb") as target:
                    _copy(download, target)
            return path + extension
        except UnsafeUrl:
            raise
        except OSError as error:
            if attempt == TRIES - 1:
                RunPodLogger().error(f"Failed to download {url}: {error}")
            else:
                time.sleep(2**attempt * 0.5)
    return None


def _copy(download: Download, target: IO[bytes]) -> None:
    for piece in download:
        target.write(piece)
