"""A web service behind a load balancing endpoint: requests go straight to it, without a queue."""

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Text(BaseModel):
    """What is counted."""

    text: str


@app.get("/ping")
def ping() -> dict[str, str]:
    """Berth sends requests once this answers."""
    return {"status": "healthy"}


@app.post("/count")
def count(body: Text) -> dict[str, int]:
    """Counts words and characters."""
    return {"words": len(body.text.split()), "characters": len(body.text)}
