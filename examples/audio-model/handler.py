"""A recording in, segments out, as speech models have them: {"start": 0.1, "end": 0.25, "text": "1"}.

The model knows the keys of a telephone. A larger one is loaded at the same place, outside the handler, so that it
is loaded once for each worker and not once for each job.
"""

import base64
import binascii
import io
import math
import struct
import wave

import berth_worker as runpod
from tones import COLUMNS, KEYS, ROWS

# What is looked at together: long enough to tell the tones apart, short enough to find where each begins.
WINDOW_SECONDS = 0.025
# Of the energy in a window, how much the two tones of a key have at least.
TONE_SHARE = 0.6
SILENCE = 500


def handler(job):
    """`audio` is a WAV in base64: 16 bits, one channel."""
    try:
        data = base64.b64decode(job["input"]["audio"], validate=True)
        with wave.open(io.BytesIO(data)) as recording:
            if recording.getsampwidth() != 2 or recording.getnchannels() != 1:
                raise ValueError("it needs 16 bits and one channel")
            rate = recording.getframerate()
            samples = struct.unpack(f"<{recording.getnframes()}h", recording.readframes(recording.getnframes()))
    except (KeyError, ValueError, EOFError, struct.error, wave.Error, binascii.Error) as error:
        raise ValueError(f"input.audio is no usable WAV in base64: {error}") from error
    yield from segments(samples, rate)


def segments(samples, rate):
    """Windows of the same key that follow each other are one segment."""
    length = int(rate * WINDOW_SECONDS)
    heard, start = None, 0.0
    for at in range(0, len(samples) + length, length):
        key = recognise(samples[at : at + length], rate)
        if key == heard:
            continue
        if heard is not None:
            yield {"start": round(start, 3), "end": round(at / rate, 3), "text": heard}
        heard, start = key, at / rate


def recognise(window, rate):
    """The key whose tones are in this part of the recording, or None."""
    energy = sum(sample * sample for sample in window)
    if not window or math.sqrt(energy / len(window)) < SILENCE:
        return None
    row, column = strongest(window, rate, ROWS), strongest(window, rate, COLUMNS)
    share = (row[0] + column[0]) * 2 / (len(window) * energy)
    return KEYS[row[1] * len(COLUMNS) + column[1]] if share > TONE_SHARE else None


def strongest(window, rate, tones):
    """The power of the strongest tone, and which it is (Goertzel's algorithm)."""
    powers = []
    for number, tone in enumerate(tones):
        turn = 2 * math.cos(2 * math.pi * tone / rate)
        before = last = 0.0
        for sample in window:
            before, last = last, sample + turn * last - before
        powers.append((before * before + last * last - turn * before * last, number))
    return max(powers)


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
