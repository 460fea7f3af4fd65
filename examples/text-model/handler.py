"""A text model, small enough to read: it learns which word follows which, when the worker starts.

A real model takes its place: load it where `learn` is called, outside the handler, so that it is loaded once
for each worker and not once for each job.
"""

import random
from collections import defaultdict
from pathlib import Path

import berth_worker as runpod

END = "."


def learn(text: str) -> dict[str, list[str]]:
    """What follows each word of a text."""
    followers: dict[str, list[str]] = defaultdict(list)
    words = text.split()
    for word, follower in zip(words, words[1:]):
        followers[word].append(follower)
    return followers


MODEL = learn(Path(__file__).with_name("corpus.txt").read_text(encoding="utf-8"))


def handler(job):
    """Yields the words of a text, one by one: they can be read while the job runs."""
    given = job["input"]
    chance = random.Random(given.get("seed", 0))
    word = given.get("prompt", "The").split()[-1]
    for _ in range(min(int(given.get("maxWords", 40)), 500)):
        followers = MODEL.get(word)
        if not followers:
            return
        word = chance.choice(followers)
        yield word
        if word.endswith(END):
            return


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
