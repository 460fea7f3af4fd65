"""
A worker of a serverless endpoint, on Berth or on any platform that speaks the public worker protocol.

`import berth_worker as runpod` is all that a handler written for the public SDK changes.
"""

from . import serverless
from .job_context import JobCancelled, JobContext, current_job
from .log import RunPodLogger
from .progress import progress_update
from .start import handler, run, start
from .version import __version__

__all__ = [
    "JobCancelled",
    "JobContext",
    "RunPodLogger",
    "__version__",
    "current_job",
    "handler",
    "progress_update",
    "run",
    "serverless",
    "start",
]
