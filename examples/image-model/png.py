"""Reads the grey values of a PNG, without a package: one byte for each channel, not interlaced."""

import struct
import zlib

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
MAX_PIXELS = 4_000_000


def read_grey(data: bytes) -> list[list[float]]:
    """The rows of a picture, each value from 0 (black) to 1 (white)."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("the picture is not a PNG")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    if depth != 8 or colour not in CHANNELS or interlaced or width * height > MAX_PIXELS:
        raise ValueError("only PNGs of 8 bits, without a palette and not interlaced, of up to 4 megapixels")
    channels = CHANNELS[colour]
    rows = unfilter(zlib.decompress(b"".join(chunks(data, b"IDAT"))), width * channels, channels)
    # Colours are averaged; the last of two or four channels is transparency.
    used = 3 if channels > 2 else 1
    return [
        [sum(row[at : at + used]) / used / 255 for at in range(0, len(row), channels)] for row in rows[:height]
    ]


def chunks(data: bytes, kind: bytes):
    at = 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == kind:
            yield data[at + 8 : at + 8 + length]
        at += length + 12


def unfilter(raw: bytes, stride: int, step: int) -> list[bytearray]:
    """Each row of a PNG says how it differs from the pixels to the left and above."""
    rows: list[bytearray] = []
    above = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for at in range(len(row)):
            left = row[at - step] if at >= step else 0
            up = above[at]
            corner = above[at - step] if at >= step else 0
            row[at] = (row[at] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]) & 255
        rows.append(row)
        above = row
    return rows


def paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
