"""Streams tokens of a causal language model with random weights, about one billion parameters."""

import time

STARTED = time.time()

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import berth_worker as runpod

CONFIG = LlamaConfig(
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    vocab_size=32000,
)


def load():
    """The model on the GPU, with weights that are made there."""
    torch.manual_seed(1)
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(CONFIG).eval()
    torch.set_default_device("cpu")
    return model


MODEL = load()
LOADED = time.time()


@torch.inference_mode()
def tokens(count):
    """Yields `count` token ids, one after the other, greedily and with a key-value cache."""
    ids = torch.ones((1, 8), dtype=torch.long, device="cuda")
    cache = None
    for _ in range(count):
        out = MODEL(input_ids=ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = out.logits[:, -1:].argmax(dim=-1)
        yield int(ids)


def handler(job):
    """Streams one chunk for each token, or generates without streaming and answers the rate."""
    count = job["input"].get("tokens", 1)
    if job["input"].get("direct"):
        generated = tokens(count)
        next(generated)
        began = time.perf_counter()
        rest = sum(1 for _ in generated)
        yield {"rate": rest / (time.perf_counter() - began)}
        return
    for index, token in enumerate(tokens(count)):
        if index == 0:
            yield {"token": token, "started": STARTED, "loaded": LOADED, "sent": time.time()}
        else:
            yield {"token": token}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
