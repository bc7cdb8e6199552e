"""The programs that make load, and what each run of them says: a dict of numbers, with `rate` in
operations a second and `busy`, the share of one processor that each process used. `servers` are
their process ids by name. A run that did not do all of its work raises Failed.
"""
import json
import os
import re
import struct
import subprocess
import time

from servers import SET_PATH, cluster, cpu_s, find_program

N_KEYS = 100_000
REDIS_CLIENTS = 50
VALUE_BYTES = 100
LIMIT_S = 300


class Failed(Exception):
    """A run whose result means nothing."""


class Sampler:
    """Processor time of some processes, noted ten times a second while a command runs: what they
    used in the last seconds of it, whatever it did before."""

    PERIOD_S = 0.1

    def __init__(self, pids):
        self.pids = pids
        self.samples = []

    def note(self):
        self.samples.append((time.monotonic(), {name: cpu_s(pid) for name, pid in
                                                self.pids.items()}))

    def shares(self, window_s):
        """Used seconds a second, by name, of the last `window_s` seconds."""
        end, last = self.samples[-1]
        begin, first = next(((at, used) for at, used in reversed(self.samples)
                             if end - at >= window_s), self.samples[0])
        return {name: (last[name] - first[name]) / max(end - begin, 1e-9) for name in self.pids}


def _run(command, servers, window_s):
    """Standard output, and the share of a processor that the client and each server used in the
    last `window_s` seconds."""
    client = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sampler = Sampler({"client": client.pid, **servers})
    end = time.monotonic() + LIMIT_S
    # Not reaped before the last sample: its times go with it. What it prints fits the pipes.
    while os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        sampler.note()
        time.sleep(Sampler.PERIOD_S)
        if time.monotonic() > end:
            client.kill()
    sampler.note()
    out, err = client.communicate()
    if client.returncode != 0:
        raise Failed(f"{command[0]} ended with {client.returncode}: "
                     f"{(err or out).decode(errors='replace').strip()[-500:]}")
    return out.decode(), sampler.shares(window_s)


def grpc_frame(message):
    """A message as gRPC sends it: not compressed, with its length in front."""
    return struct.pack(">BI", 0, len(message)) + message


def h2load(servers, address, path, n, in_flight):
    """One prepared request over and over, over one connection."""
    out, busy = _run([find_program("h2load", "nghttp2-client"), "-c", 1, "-t", 1, "-m", in_flight,
                      "-n", n, "-d", path, "-H", "content-type: application/grpc", "-H",
                      "te: trailers", f"http://{address}{SET_PATH}"], servers, LIMIT_S)
    rate = re.search(r"finished in [^,]*, ([0-9.]+) req/s", out)
    done = re.search(r"(\d+) succeeded", out)
    if not rate or not done or int(done.group(1)) != n:
        raise Failed(f"h2load: not all of {n} calls were answered:\n{out}")
    return {"rate": float(rate.group(1)), "busy": busy}


def redis_benchmark(servers, port, n, pipeline):
    """50 clients, each with `pipeline` SETs of random keys under way."""
    out, busy = _run([find_program("redis-benchmark", "redis-tools"), "-p", port, "-t", "set",
                      "-c", REDIS_CLIENTS, "-P", pipeline, "-r", N_KEYS, "-d", VALUE_BYTES, "-n", n,
                      "-q"], servers, LIMIT_S)
    rates = re.findall(r"([0-9.]+) requests per second", out)
    if not rates or "rror" in out:
        raise Failed(f"redis-benchmark: {out[-500:]}")
    return {"rate": float(rates[-1]), "busy": busy}


def pipeline(servers, address, batches_file, in_flight, seconds):
    """tests/bench/pipeline.c."""
    out, busy = _run([cluster.binary("tests/bench/bench_pipeline"), address, batches_file,
                      in_flight, seconds], servers, seconds * 0.8)
    return {**json.loads(out), "busy": busy}


def bench(servers, coordinator, seconds, *options):
    """The verb `bench`."""
    out, busy = _run([cluster.binary("redistinto"), "--config", "/dev/null", "--coordinator",
                      coordinator, "-o", "json", "bench", "--duration",
                      f"{round(seconds * 1000)}ms", *options], servers, seconds)
    got = json.loads(out)
    return {"rate": got["rate"], "p50_us": got["latency_us"]["p50"], "busy": busy}


def load(servers, call, address, in_flight, seconds, keys_file, *route):
    """tests/bench/load.c."""
    out, busy = _run([cluster.binary("tests/bench/bench_load"), call, address, in_flight, seconds,
                      keys_file, *route], servers, seconds * 0.8)
    return {**json.loads(out), "busy": busy}


def store(engine, directory, group, seconds):
    """tests/bench/store.c."""
    out, busy = _run([cluster.binary("tests/bench/bench_store"), engine, directory, group,
                      seconds], {}, seconds)
    return {**json.loads(out), "busy": busy}


def instance_checks():
    """Nanoseconds of what tests/bench/instance_checks.c measures, by name."""
    out, _ = _run([cluster.binary("tests/bench/bench_instance_checks")], {}, LIMIT_S)
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^(.+?) +([0-9.]+) ns$", out, re.M)}

