"""The public worker protocol: held requests for jobs, posts for results."""
