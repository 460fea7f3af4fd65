"""Progress of a running job, from wherever the handler calls."""

from __future__ import annotations

import sys
from typing import Any

from .json_text import UnsendableOutput
from .log import RunPodLogger


def progress_update(job: dict[str, Any], progress: Any) -> None:
    """
    Shows a value as the output of the job while it runs. Of several in quick succession only the latest may
    be sent.
    """
    log = RunPodLogger()
    module = sys.modules.get(f"{__package__}.worker")
    worker = getattr(module, "active", None)
    try:
        if worker is None:
            log.info(f"Progress: {progress}", job.get("id"))
        elif not worker.progress(job["id"], progress):
            log.debug("Progress was not sent: the job does not run here.", job["id"])
    except UnsendableOutput as error:
        log.error(str(error), job.get("id"))
