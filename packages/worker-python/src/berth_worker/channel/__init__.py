"""Berth's own worker channel, `berth-worker/1`: one connection, lines both ways, in batches."""
