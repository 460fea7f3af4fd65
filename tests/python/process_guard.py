"""
Ends the processes that work below a folder of a test, also when the test itself is killed: a worker of the
public SDK whose server is gone asks again and again, for ever.

The guard is a process of its own. It knows the folders by its standard input, which ends with the test.
Processes are found by their working directory, in /proc: those that a server or a worker started are found
too. Without /proc nothing is ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

_lock = threading.Lock()
_guard: subprocess.Popen[str] | None = None


def guard(folder: Path) -> None:
    """From now on, what runs below the folder ends with this process. Then the folder is removed."""
    _tell(f"+{folder}")


def release(folder: Path) -> None:
    """Ends what still runs below the folder, and removes it."""
    end_all(folder)
    shutil.rmtree(folder, ignore_errors=True)
    _tell(f"-{folder}")


def processes_below(folder: Path) -> list[int]:
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            at = os.readlink(f"/proc/{entry}/cwd").removesuffix(" (deleted)")
            # A process that has ended but was not waited for yet keeps its entry.
            ended = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if not ended and (at == str(folder) or at.startswith(f"{folder}/")):
            found.append(int(entry))
    return found


def end_all(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while (left := processes_below(folder)) and time.monotonic() < deadline:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def _tell(line: str) -> None:
    global _guard
    with _lock:
        if _guard is None:
            # In a session of its own: a signal from the terminal must not end it before its work.
            _guard = subprocess.Popen(
                [sys.executable, "-I", __file__],
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
                cwd="/",
            )
        assert _guard.stdin is not None
        _guard.stdin.write(f"{line}\n")
        _guard.stdin.flush()


def _main() -> None:
    folders: set[str] = set()
    for line in sys.stdin:
        folder = line.rstrip("\n")
        (folders.add if folder[0] == "+" else folders.discard)(folder[1:])
    for name in folders:
        end_all(Path(name))
        shutil.rmtree(name, ignore_errors=True)


if __name__ == "__main__":
    _main()
