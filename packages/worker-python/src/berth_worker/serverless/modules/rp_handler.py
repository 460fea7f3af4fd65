"""`runpod.serverless.modules.rp_handler`."""

from ...handler_kind import is_generator

__all__ = ["is_generator"]
