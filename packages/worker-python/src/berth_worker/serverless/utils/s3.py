"""A small S3 client: signed uploads and presigned addresses, with Signature Version 4 and without boto3."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import time
from datetime import datetime, timezone
from typing import IO, Any
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
DEFAULT_REGION = "us-east-1"
UNSIGNED = "UNSIGNED-PAYLOAD"
TIMEOUT_SECONDS = 300
TRIES = 3
#: A larger file goes up in parts. S3 takes at most 5 GB at once.
PART_BYTES = 64 * 1024 * 1024
WEEK_SECONDS = 604_800


class S3Error(OSError):
    """The bucket refused a request."""


class S3Client:
    """
    Path-style addresses: `<endpoint>/<bucket>/<key>`. An endpoint that names the bucket as its first label is
    used as it is.
    """

    def __init__(self, endpoint: str, access_key: str, secret_key: str, region: str | None = None) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f'the endpoint of the bucket is "{endpoint}"; it has to be an http or https address'
            )
        self._secure = parts.scheme == "https"
        self._host = parts.netloc
        self._base = parts.path.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._access_key = access_key
        self._secret_key = secret_key
        self._region = region or region_of(endpoint) or DEFAULT_REGION

    def put(self, bucket: str, key: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._request("PUT", self._path(bucket, key), {}, body, headers)

    def put_file(self, bucket: str, key: str, path: str, headers: dict[str, str] | None = None) -> None:
        """In parts where the file is large."""
        with open(path, "rb") as file:
            if os.path.getsize(path) <= PART_BYTES:
                self.put(bucket, key, file.read(), headers)
            else:
                self._put_parts(self._path(bucket, key), file, headers)

    def presigned_get(
        self, bucket: str, key: str, seconds: int = WEEK_SECONDS, now: datetime | None = None
    ) -> str:
        """An address from which anybody can read the object until it expires."""
        at = now or datetime.now(timezone.utc)
        query = {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": f"{self._access_key}/{self._scope(at)}",
            "X-Amz-Date": _timestamp(at),
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
        }
        path = self._path(bucket, key)
        signature = self._signature("GET", path, query, {"host": self._host}, UNSIGNED, at)
        return f"{self._origin}{path}?{_query(query)}&X-Amz-Signature={signature}"

    def _put_parts(self, path: str, file: IO[bytes], headers: dict[str, str] | None) -> None:
        import xml.etree.ElementTree as xml

        begun = xml.fromstring(self._request("POST", path, {"uploads": ""}, b"", headers)[1])
        upload = next(
            (element.text or "" for element in begun.iter() if element.tag.endswith("UploadId")), ""
        )
        try:
            parts: list[str] = []
            while piece := file.read(PART_BYTES):
                query = {"partNumber": str(len(parts) + 1), "uploadId": upload}
                parts.append(self._request("PUT", path, query, piece)[0].get("etag", ""))
            listed = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
                for number, etag in enumerate(parts, 1)
            )
            body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
            self._request("POST", path, {"uploadId": upload}, body)
        except BaseException:
            self._request("DELETE", path, {"uploadId": upload}, b"")
            raise

    def _request(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: bytes,
        headers: dict[str, str] | None = None,
    ) -> tuple[dict[str, str], bytes]:
        """Tried again where the server or the network fails."""
        for attempt in range(TRIES):
            try:
                status, answered, text = self._send(method, path, query, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                failure: Exception = S3Error(f"{method} {self._origin}{path} failed: {error}")
            else:
                if status < 300:
                    return answered, text
                failure = S3Error(
                    f"{method} {self._origin}{path} answered {status}: {text[:500].decode(errors='replace')}"
                )
                if status < 500 and status != 429:
                    raise failure
            if attempt == TRIES - 1:
                raise failure
            time.sleep(0.5 * 2**attempt)
        raise AssertionError("unreachable")

    def _send(
        self, method: str, path: str, query: dict[str, str], body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        now = datetime.now(timezone.utc)
        digest = hashlib.sha256(body).hexdigest()
        signed = {
            **{name.lower(): value for name, value in headers.items()},
            "host": self._host,
            "x-amz-content-sha256": digest,
            "x-amz-date": _timestamp(now),
        }
        signature = self._signature(method, path, query, signed, digest, now)
        names = ";".join(sorted(signed))
        credential = f"{self._access_key}/{self._scope(now)}"
        authorization = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, timeout=TIMEOUT_SECONDS)
        try:
            target = f"{path}?{_query(query)}" if query else path
            connection.request(method, target, body, {**signed, "Authorization": authorization})
            response = connection.getresponse()
            return (
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def _path(self, bucket: str, key: str) -> str:
        first_label = self._host.partition(".")[0]
        where = "" if bucket and first_label == bucket else f"/{quote(bucket, safe='-_.~')}"
        return f"{self._base}{where}/{quote(key, safe='/-_.~')}"

    def _scope(self, at: datetime) -> str:
        return f"{at:%Y%m%d}/{self._region}/s3/aws4_request"

    def _signature(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        headers: dict[str, str],
        digest: str,
        at: datetime,
    ) -> str:
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
        request = "\n".join((method, path, _query(query), lines, ";".join(sorted(headers)), digest))
        text = "\n".join(
            (ALGORITHM, _timestamp(at), self._scope(at), hashlib.sha256(request.encode()).hexdigest())
        )
        key = f"AWS4{self._secret_key}".encode()
        for part in (f"{at:%Y%m%d}", self._region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def region_of(endpoint: str) -> str | None:
    """
    The region that an endpoint's name holds: `https://bucket.s3.<region>…`,
    `https://bucket.<region>.digitaloceanspaces.com`.
    """
    host = urlsplit(endpoint).hostname or ""
    if ".s3." in f".{host}":
        label = f".{host}".split(".s3.", 1)[1].split(".")[0]
        return None if label == "amazonaws" else label
    if host.endswith(".digitaloceanspaces.com"):
        return host[: -len(".digitaloceanspaces.com")].rpartition(".")[2]
    return None


def extra_headers(extra_args: dict[str, Any] | None) -> dict[str, str]:
    """The request headers for boto3's `ExtraArgs`. Raises ValueError for one that has no header here."""
    named = {
        "ContentType": "content-type",
        "CacheControl": "cache-control",
        "ContentDisposition": "content-disposition",
        "ContentEncoding": "content-encoding",
        "ACL": "x-amz-acl",
    }
    headers: dict[str, str] = {}
    for name, value in (extra_args or {}).items():
        if name == "Metadata":
            headers.update({f"x-amz-meta-{key.lower()}": str(text) for key, text in value.items()})
        elif name in named:
            headers[named[name]] = str(value)
        else:
            raise ValueError(f"extra_args has {name!r}; known are Metadata, {', '.join(named)}")
    return headers


def _query(query: dict[str, str]) -> str:
    return "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items())
    )


def _timestamp(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%SZ}"
