"""
Gives workers of the public SDK the transport of this package, without a change in their image.

A server starts the worker with `accelerate/path` in PYTHONPATH. Nothing else of this package is imported
until the worker imports the public SDK.
"""
