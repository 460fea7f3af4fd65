"""Keeps local folders warm across workers, by a mirror of them on a network volume."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from ...log import RunPodLogger

__all__ = ["VolumeCache"]

#: Network file systems round modification times.
MTIME_TOLERANCE = 2.0
#: How long the end of the process waits for a copy in the background.
JOIN_SECONDS = 30.0


class VolumeCache:
    """
    `hydrate()` copies what the volume has newer into the local folders, `sync()` the other way round. As a
    context manager it hydrates on entry and syncs on exit. Without a volume, or without a namespace, nothing
    is done. The mirror is a plain copy of the folders; it is not the archive that the public SDK keeps.
    """

    def __init__(
        self,
        dirs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        namespace: str | None = None,
        volume_path: str = "/runpod-volume",
        best_effort: bool = True,
        max_workers: int | None = None,
    ) -> None:
        given = [dirs] if isinstance(dirs, (str, os.PathLike)) else list(dirs)
        self.dirs = [os.path.abspath(os.fspath(folder)) for folder in given]
        self.namespace = namespace or os.environ.get("RUNPOD_ENDPOINT_ID") or ""
        if self.namespace in (".", "..") or "/" in self.namespace or "\0" in self.namespace:
            raise ValueError(f"namespace is {self.namespace!r}; it has to be one part of a path")
        self._volume = volume_path
        self._best_effort = best_effort
        self._workers = max_workers or min(32, (os.cpu_count() or 4) * 4)
        self._lock = threading.Lock()

    @property
    def available(self) -> bool:
        return bool(self.namespace) and os.path.isdir(self._volume)

    def hydrate(self) -> int:
        """Volume to local. Returns how many files were copied."""
        return self._guarded(self._hydrate)

    def sync(self, *, background: bool = True) -> int | threading.Thread:
        """Local to volume. In the background it returns the thread, else how many files were copied."""
        if not background:
            return self._guarded(self._sync)
        thread = threading.Thread(
            target=lambda: self._guarded(self._sync), name="berth-volume-cache", daemon=True
        )
        thread.start()
        import atexit

        atexit.register(thread.join, JOIN_SECONDS)
        return thread

    def __enter__(self) -> VolumeCache:
        self.hydrate()
        return self

    def __exit__(self, *error: object) -> None:
        self.sync()

    def _hydrate(self) -> int:
        """Only into the folders that are cached, whatever else the mirror holds."""
        return sum(self._copy_all(self._mirror() + folder, folder) for folder in self.dirs)

    def _sync(self) -> int:
        return sum(self._copy_all(folder, self._mirror() + folder) for folder in self.dirs)

    def _mirror(self) -> str:
        return os.path.join(self._volume, ".cache", self.namespace)

    def _copy_all(self, root: str, target: str) -> int:
        found = ((path, os.path.join(target, os.path.relpath(path, root))) for path in _files(root))
        pairs = [pair for pair in found if _is_newer(*pair)]
        with ThreadPoolExecutor(self._workers) as executor:
            return sum(executor.map(lambda pair: self._copy(*pair), pairs))

    def _copy(self, source: str, target: str) -> int:
        """Under another name first, so that no reader sees half a file."""
        partial = f"{target}.{os.getpid()}.{threading.get_ident()}.partial"
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, partial)
            os.replace(partial, target)
            return 1
        except OSError as error:
            if not self._best_effort:
                raise
            RunPodLogger().warn(f"{source} was not copied to {target}: {error}")
            return 0

    def _guarded(self, work: Callable[[], int]) -> int:
        if not self.available:
            return 0
        try:
            with self._lock:
                return work()
        except Exception as error:
            if not self._best_effort:
                raise
            RunPodLogger().warn(f"The volume cache failed: {error}")
            return 0


def _files(root: str) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".partial") and os.path.isfile(path):
                yield path


def _is_newer(source: str, target: str) -> bool:
    try:
        old = os.stat(target)
    except OSError:
        return True
    new = os.stat(source)
    return new.st_size != old.st_size or new.st_mtime > old.st_mtime + MTIME_TOLERANCE
