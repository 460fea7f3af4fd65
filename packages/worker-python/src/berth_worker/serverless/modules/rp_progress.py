"""`runpod.serverless.modules.rp_progress`."""

from ...progress import progress_update

__all__ = ["progress_update"]
