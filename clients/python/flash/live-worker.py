"""Stands in for flash's own worker image, which cannot be fetched here: it runs the function that a call brings along."""

import base64
import contextlib
import inspect
import io
import traceback

import cloudpickle
import runpod


def unpacked(text):
    return cloudpickle.loads(base64.b64decode(text))


async def handler(job):
    asked = job["input"]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            names = {}
            exec(asked["function_code"], names)
            result = names[asked["function_name"]](*map(unpacked, asked.get("args", [])), **{name: unpacked(value) for name, value in asked.get("kwargs", {}).items()})
            if inspect.isawaitable(result):
                result = await result
    except Exception as error:
        return {"success": False, "error": f"{error}\n{traceback.format_exc()}", "stdout": printed.getvalue()}
    return {"success": True, "result": base64.b64encode(cloudpickle.dumps(result)).decode(), "stdout": printed.getvalue()}


runpod.serverless.start({"handler": handler})
