"""`runpod.serverless.modules.rp_fitness`."""

from ...fitness import clear_fitness_checks, register_fitness_check

__all__ = ["clear_fitness_checks", "register_fitness_check"]
