"""Measures Python handlers on a GPU through Berth, beside the same code called directly.

Needs a GPU, Python with torch and transformers, and an installed Berth (`npm install`); no network.

    python3 bench/gpu/gpu_bench.py
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = Path(__file__).resolve().parent / "handlers"
KEY = "bench-" + "k" * 32
BARS = {"tokens": 0.95, "matmul_ms": 4.0, "cold_start_s": 1.0}


class Berth:
    """A server on a free port with a data folder of its own."""

    def __init__(self, data):
        command = [str(ROOT / "packages/cloud/bin/berth"), "up", "--port", "0", "--data", data]
        environment = {**os.environ, "BERTH_ROOT_KEY": KEY, "BERTH_DOCKER": "off", "BERTH_RATE_LIMITS": "off"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.url = None
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if "berth is up at " in line:
                self.url = line.split("berth is up at ")[1].split()[0]
                break
        if self.url is None:
            raise RuntimeError("Berth did not start:\n" + "".join(self.lines))

    def call(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data,
            {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(headers or {})},
            method=method,
        )
        return urllib.request.urlopen(request, timeout=300)

    def json(self, method, path, body=None):
        with self.call(method, path, body) as response:
            return json.load(response)

    def deploy(self, name, source):
        """Uploads a handler together with the worker SDK and makes an endpoint of it."""
        folder = Path(tempfile.mkdtemp())
        shutil.copy(HANDLERS / source, folder / "handler.py")
        shutil.copytree(
            ROOT / "packages/worker-python/src/berth_worker",
            folder / "berth_worker",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        environment = {**os.environ, "BERTH_URL": self.url, "BERTH_API_KEY": KEY}
        command = [
            str(ROOT / "packages/cloud/bin/berth"),
            "deploy",
            str(folder),
            "--name",
            name,
            "--gpu",
            gpu_type(),
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise RuntimeError(done.stderr + done.stdout)
        return json.loads(done.stdout)["id"]

    def wait_until_running(self, endpoint, job, seconds=120):
        """Fails with the reason of the job and the worker's log where no worker takes it."""
        for _ in range(seconds * 20):
            status = self.json("GET", f"/v2/{endpoint}/status/{job}")
            if status["status"] != "IN_QUEUE":
                return
            time.sleep(0.05)
        raise RuntimeError(f"the job still waits: {status.get('reason')}")

    def delete(self, endpoint):
        self.call("DELETE", f"/v2/serverless/{endpoint}").close()

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def gpu_type():
    """The name of the first GPU of this machine, as the catalog spells it."""
    names = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    return os.environ.get("BENCH_GPU") or names.stdout.splitlines()[0].strip()


def direct(program):
    """Runs a piece of Python beside the handlers and answers the JSON that it prints last."""
    environment = {**os.environ, "PYTHONPATH": f"{HANDLERS}:{ROOT / 'packages/worker-python/src'}"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def cold_start(berth, endpoint):
    """The first job of an endpoint without workers, in seconds from submit to first chunk."""
    began = time.time()
    job = berth.json("POST", f"/v2/{endpoint}/run", {"input": {"tokens": 1}})["id"]
    berth.wait_until_running(endpoint, job)
    with berth.call("GET", f"/v2/{endpoint}/stream/{job}", headers={"Accept": "text/event-stream"}) as events:
        for line in events:
            if line.startswith(b"data:"):
                return time.time() - began, json.loads(line[5:])["output"]
    raise RuntimeError(json.dumps(berth.json("GET", f"/v2/{endpoint}/status/{job}")))


def stream_rate(berth, endpoint, count):
    """Tokens a second between the first and the last event of a stream."""
    job = berth.json("POST", f"/v2/{endpoint}/run", {"input": {"tokens": count}})["id"]
    seen, first, last = 0, 0.0, 0.0
    with berth.call("GET", f"/v2/{endpoint}/stream/{job}", headers={"Accept": "text/event-stream"}) as events:
        for line in events:
            if line.startswith(b"data:"):
                last = time.perf_counter()
                first = first or last
                seen += 1
    if seen != count:
        raise RuntimeError(f"{seen} of {count} tokens arrived")
    return (count - 1) / (last - first)


def direct_rate(berth, endpoint, count):
    """Tokens a second of the same model in the same worker, without streaming."""
    answer = berth.json(
        "POST", f"/v2/{endpoint}/runsync?wait=300000", {"input": {"tokens": count, "direct": True}}
    )
    return answer["output"][0]["rate"]


def main():
    figures = {}
    data = tempfile.mkdtemp()
    berth = Berth(data)
    try:
        count = 200
        model = berth.deploy("model", "language_model.py")
        alone = direct(
            "import time; t=time.time()\n"
            "import json, language_model as m\n"
            "next(m.tokens(1)); print(json.dumps({'ready': time.time() - t, 'load': m.LOADED - m.STARTED}))"
        )
        print("alone:", json.dumps(alone), flush=True)
        began = time.time()
        cold, first = cold_start(berth, model)
        phases = {
            "until the handler's first line": first["started"] - began,
            "import and load": first["loaded"] - first["started"],
            "until the first token was yielded": first["sent"] - first["loaded"],
            "until it arrived": began + cold - first["sent"],
        }
        print("cold start:", cold, json.dumps(phases), flush=True)
        stream_rate(berth, model, count)
        pairs = [(stream_rate(berth, model, count), direct_rate(berth, model, count)) for _ in range(12)]
        print("tokens a second, streamed and direct:", pairs, flush=True)
        figures["cold start, s"] = {
            "through Berth": cold,
            "import, load and first token alone": alone["ready"],
            "added": cold - alone["ready"],
            "bar": BARS["cold_start_s"],
            **phases,
        }
        figures["tokens a second"] = {
            "direct, in the same process": statistics.median(direct for _, direct in pairs),
            "through Berth": statistics.median(streamed for streamed, _ in pairs),
            "ratio": statistics.median(streamed / direct for streamed, direct in pairs),
            "bar": BARS["tokens"],
        }
        berth.delete(model)  # its worker holds the GPU
        matmul = berth.deploy("matmul", "matmul.py")
        berth.wait_until_running(matmul, berth.json("POST", f"/v2/{matmul}/run", {"input": {}})["id"])
        times, on_gpu = [], []
        for _ in range(300):
            began = time.perf_counter()
            answer = berth.json("POST", f"/v2/{matmul}/runsync", {"input": {}})
            times.append(1000 * (time.perf_counter() - began))
            on_gpu.append(answer["output"]["gpu_ms"])
        warm = sorted(times[50:])
        figures["matrix product, ms"] = {
            "on the GPU": statistics.median(on_gpu[50:]),
            "runsync p50": warm[len(warm) // 2],
            "runsync p99": warm[int(len(warm) * 0.99)],
            "bar": BARS["matmul_ms"],
        }
    finally:
        berth.stop()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
