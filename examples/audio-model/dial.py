"""Writes a recording of telephone keys to the standard output: dial.py 112 >call.wav"""

import io
import math
import struct
import sys
import wave

from tones import COLUMNS, KEYS, ROWS

RATE = 8000
TONE_SECONDS = 0.15
PAUSE_SECONDS = 0.1


def dial(keys: str) -> bytes:
    samples = [0] * int(RATE * PAUSE_SECONDS)
    for key in keys:
        row, column = divmod(KEYS.index(key), len(COLUMNS))
        for at in range(int(RATE * TONE_SECONDS)):
            turn = 2 * math.pi * at / RATE
            samples.append(int(9000 * (math.sin(turn * ROWS[row]) + math.sin(turn * COLUMNS[column]))))
        samples += [0] * int(RATE * PAUSE_SECONDS)
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(RATE)
        recording.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(dial(sys.argv[1]))
