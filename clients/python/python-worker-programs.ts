// Python programs that the suite of the SDK's workers runs.

/** A handler that does what its input says. */
export const PLAIN = `
import time
import runpod

def handler(job):
    wanted = job["input"]
    do = wanted["do"]
    if do == "job":
        return job
    if do == "raise":
        raise ValueError("no such thing")
    if do == "error":
        return {"error": "told by the handler", "half": 1}
    if do == "numbers":
        return {"nan": float("nan"), "float": 1.0, "large": 2 ** 60, "text": "Grüße 🎉"}
    if do == "nothing":
        return {}
    if do == "progress":
        runpod.serverless.progress_update(job, {"percent": 50})
        time.sleep(3)
        return "all"
    if do == "bytes":
        return b"not JSON"
    if do == "refresh":
        return {"refresh_worker": True, "kept": 1}
    if do == "sleep":
        time.sleep(wanted["seconds"])
        return "slept"
    return wanted

if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
`;

/** Four jobs at once, each as long as its input says. */
export const CONCURRENT = `
import asyncio, time
import runpod

async def handler(job):
    began = time.time()
    print("began " + job["id"], flush=True)
    try:
        await asyncio.sleep(job["input"]["seconds"])
    except asyncio.CancelledError:
        print("cancelled " + job["id"])
        raise
    return {"began": began, "ended": time.time()}

if __name__ == "__main__":
    runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 4})
`;

/** One job at a time. */
export const ASYNC = CONCURRENT.replace(', "concurrency_modifier": lambda current: 4', '');
/** Is replaced after every job. */
export const REFRESHING = PLAIN.replace(
  '{"handler": handler}',
  '{"handler": handler, "refresh_worker": True}',
);

/** Streams, and may fail in the middle. */
export const GENERATOR = `
import runpod

def handler(job):
    for number in range(job["input"]["count"]):
        if number == job["input"].get("raise_at"):
            raise RuntimeError("stopped in the middle")
        yield {"number": number, "text": "ü" * number}

if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
`;

/** Streams, and returns the list of what it streamed. */
export const AGGREGATING = `
import runpod

async def handler(job):
    for number in range(job["input"]["count"]):
        yield number

if __name__ == "__main__":
    runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
`;

/**
 * In the shape of the vLLM worker: a concurrent generator that aggregates, takes a route and a body, and
 * streams raw events cut anywhere.
 */
export const LANGUAGE_MODEL = `
import json
import runpod

async def handler(job):
    wanted = job["input"]
    route, body = wanted["openai_route"], wanted.get("openai_input") or {}
    if route == "/v1/models":
        yield {"object": "list", "data": [{"id": "small", "object": "model"}]}
    elif body.get("model") != "small":
        yield {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}}
    elif body.get("stream"):
        deltas = [{"choices": [{"delta": {"content": word}}]} for word in ["Grüße", " an", " alle"]]
        text = "".join("data: " + json.dumps(delta) + "\\n\\n" for delta in deltas) + "data: [DONE]\\n\\n"
        for start in range(0, len(text), 7):
            yield text[start:start + 7]
    else:
        message = {"role": "assistant", "content": body["messages"][0]["content"].upper()}
        yield {"object": "chat.completion", "choices": [{"message": message}]}

if __name__ == "__main__":
    settings = {"concurrency_modifier": lambda current: 30, "return_aggregate_stream": True}
    runpod.serverless.start({"handler": handler, **settings})
`;

/** Its check of the machine fails, so it takes no job. */
export const UNHEALTHY = `
import runpod

@runpod.serverless.register_fitness_check
def disk_is_fast():
    raise RuntimeError("the disk is slow")

if __name__ == "__main__":
    runpod.serverless.start({"handler": lambda job: 1})
`;

/** Each call of the client, and what it answers. */
export const CLIENT = `
import json, os, sys
import runpod

runpod.api_key = os.environ["KEY"]
endpoint = runpod.Endpoint(os.environ["ENDPOINT"])
said = {}

job = endpoint.run({"input": {"do": "echo", "n": 1}})
said["output"] = job.output(timeout=60)
said["status"] = job.status()
said["run_sync"] = endpoint.run_sync({"do": "echo", "n": 2}, timeout=60)
said["failed"] = endpoint.run_sync({"input": {"do": "raise"}}, timeout=60)
said["nested"] = endpoint.run({"input": {}}).cancel()
said["stream"] = list(endpoint.run({"input": {"do": "echo", "n": 3}}).stream())
said["health"] = endpoint.health()
said["purge"] = endpoint.purge_queue()
try:
    runpod.Endpoint("nosuchendpoint").run({"input": {"a": 1}})
except Exception as error:
    said["unknown"] = str(error)
runpod.api_key = "rpa_WRONG"
try:
    runpod.Endpoint(os.environ["ENDPOINT"]).run({"input": {"a": 1}})
except Exception as error:
    said["unauthorized"] = type(error).__name__
print("SAID " + json.dumps(said))
`;

/** Streams read with the plain and with the asyncio client. */
export const STREAM_CLIENT = `
import asyncio, json, os
import aiohttp
import runpod

runpod.api_key = os.environ["KEY"]
said = {"stream": list(runpod.Endpoint(os.environ["ENDPOINT"]).run({"input": {"count": 25}}).stream())}

async def main():
    async with aiohttp.ClientSession() as session:
        endpoint = runpod.AsyncioEndpoint(os.environ["ENDPOINT"], session)
        job = await endpoint.run({"count": 5})
        said["async_stream"] = [chunk async for chunk in job.stream()]
        said["async_status"] = await job.status()
        said["async_output"] = await job.output(timeout=60)
        said["async_cancel"] = await (await endpoint.run({"count": 1000000})).cancel()
        if os.environ["WHOLE_CLIENT"] == "true":
            said["async_health"] = await endpoint.health()
            said["async_purge"] = await endpoint.purge_queue()
        runpod.api_key = "rpa_WRONG"
        try:
            await runpod.AsyncioEndpoint(os.environ["ENDPOINT"], session).run({"count": 1})
        except Exception as error:
            said["async_unauthorized"] = type(error).__name__

asyncio.run(main())
print("SAID " + json.dumps(said))
`;
