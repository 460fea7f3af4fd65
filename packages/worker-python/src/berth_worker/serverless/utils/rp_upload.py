"""Uploads what a job made to a bucket, or to a folder of this machine where no bucket is configured."""

from __future__ import annotations

import mimetypes
import os
import shutil
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...log import RunPodLogger
from .s3 import S3Client, S3Error, extra_headers

__all__ = [
    "S3Error",
    "bucket_upload",
    "files",
    "upload_file_to_bucket",
    "upload_image",
    "upload_in_memory_object",
]

LOCAL_FOLDER = "local_upload"
LOCAL_IMAGE_FOLDER = "simulated_uploaded"


def upload_file_to_bucket(
    file_name: str,
    file_location: str,
    bucket_creds: dict[str, Any] | None = None,
    bucket_name: str | None = None,
    prefix: str | None = None,
    extra_args: dict[str, Any] | None = None,
) -> str:
    """Uploads a file and returns an address from which it can be read for a week."""
    client = _client(bucket_creds)
    if client is None:
        return _save(LOCAL_FOLDER, file_name, source=file_location)
    bucket, key = _place(file_name, bucket_name, prefix)
    client.put_file(bucket, key, file_location, extra_headers(extra_args))
    return client.presigned_get(bucket, key)


def upload_in_memory_object(
    file_name: str,
    file_data: bytes,
    bucket_creds: dict[str, Any] | None = None,
    bucket_name: str | None = None,
    prefix: str | None = None,
) -> str:
    """Uploads bytes and returns an address from which they can be read for a week."""
    client = _client(bucket_creds)
    if client is None:
        return _save(LOCAL_FOLDER, file_name, data=file_data)
    bucket, key = _place(file_name, bucket_name, prefix)
    client.put(bucket, key, file_data)
    return client.presigned_get(bucket, key)


def upload_image(
    job_id: str,
    image_location: str,
    result_index: int = 0,
    results_list: list[Any] | None = None,
    bucket_name: str | None = None,
) -> str:
    """Uploads a file under a random name below the job's id."""
    extension = os.path.splitext(image_location)[1]
    name = f"{uuid.uuid4().hex[:8]}{extension}"
    client = _client(None)
    if client is None:
        address = _save(LOCAL_IMAGE_FOLDER, name, source=image_location)
    else:
        bucket, key = _place(name, bucket_name, job_id)
        kind = mimetypes.guess_type(image_location)[0] or f"image/{extension.lstrip('.')}"
        client.put_file(bucket, key, image_location, {"content-type": kind})
        address = client.presigned_get(bucket, key)
    if results_list is not None:
        results_list[result_index] = address
    return address


def files(job_id: str, file_list: list[str]) -> list[str]:
    """Uploads several files at a time, as `upload_image` does each."""
    with ThreadPoolExecutor() as executor:
        return list(executor.map(lambda path: upload_image(job_id, path), file_list))


def bucket_upload(job_id: str, file_list: list[str], bucket_creds: dict[str, Any]) -> list[str]:
    """
    Uploads files below the job's id to the bucket of the credentials, and returns their plain addresses.
    """
    client = _client(bucket_creds)
    if client is None:
        raise ValueError("bucket_creds needs endpointUrl, accessId and accessSecret")
    bucket = str(bucket_creds["bucketName"])
    for path in file_list:
        client.put_file(bucket, f"{job_id}/{path}", path)
    return [f"{bucket_creds['endpointUrl']}/{bucket}/{job_id}/{path}" for path in file_list]


def _client(creds: dict[str, Any] | None) -> S3Client | None:
    """None where no bucket is configured."""
    if creds:
        endpoint, access_key, secret_key = (
            creds[name] for name in ("endpointUrl", "accessId", "accessSecret")
        )
    else:
        endpoint, access_key, secret_key = (
            os.environ.get(f"BUCKET_{name}")
            for name in ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
        )
    return S3Client(endpoint, access_key, secret_key) if endpoint and access_key and secret_key else None


def _place(file_name: str, bucket_name: str | None, prefix: str | None) -> tuple[str, str]:
    """The bucket, which is that of the month by default, and the key."""
    return bucket_name or time.strftime("%m-%y"), f"{prefix}/{file_name}" if prefix else file_name


def _save(folder: str, file_name: str, *, source: str | None = None, data: bytes = b"") -> str:
    RunPodLogger().warn(
        f"No bucket is configured (BUCKET_ENDPOINT_URL and its keys): the file is saved in {folder}."
    )
    path = f"{folder}/{file_name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if source is not None:
        shutil.copyfile(source, path)
    else:
        with open(path, "wb") as file:
            file.write(data)
    return path
