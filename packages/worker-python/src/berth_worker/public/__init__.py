"""The public worker protocol: long polls for jobs, posts for results."""
