"""`runpod.serverless.modules.rp_logger`."""

from ...log import LOG_LEVELS, MAX_MESSAGE_LENGTH, RunPodLogger

__all__ = ["LOG_LEVELS", "MAX_MESSAGE_LENGTH", "RunPodLogger"]
