"""JSON as it goes over the wire: compact UTF-8."""

from __future__ import annotations

import json
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


class UnsendableOutput(TypeError):
    """A handler produced something that JSON has no form for."""


def json_bytes(value: Any) -> bytes:
    """
    Encodes a value. Lone surrogates, which UTF-8 cannot hold, are escaped. NaN and Infinity are written as
    Python does.
    """
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return _encode_ascii(value).encode()


def output_bytes(what: str, value: Any) -> bytes:
    """Encodes what a handler produced, or raises an error that names it."""
    try:
        return json_bytes(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableOutput(f"{what} cannot be sent as JSON: {error}") from error
