#!/usr/bin/env python3
"""The course's setup while its processes are killed: does everything that was STOREd survive?

Each run starts a coordinator and three instances with the course's configuration, and workers that
run ESI scripts of GET, SET and STORE on keys that they share, one redistinto-esi after the other.
Coordinator, instances and ESIs are killed (SIGKILL) in an order and at moments that the seed
decides, two at a time now and then, and started again on their data. Then everybody comes to rest, and a last script GETs
every key. Two things are checked:

- acked_lost: a STORE was answered OK, and neither its value nor a newer one is there. Which value
  is newer follows from the tokens of the locks under which they were SET. One whose ESI was killed
  before its results said more may be newer as well.
- blocked: a script or a key's lock that did not come to its end.

Runs alternate between the profiles. The seed decides scripts, victims and pauses; real processes
decide what meets what.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from cluster import Service, binary, kill_descendants, run, wait_until  # noqa: E402

PROFILES = ("classic", "default")
INSTANCES = "abc"
WORKERS = 3
KEYS = [f"postre:{n}" for n in ("flan", "torta", "helado", "budin")] + ["bebida:agua", "zeta"]
# An instance that came back is not let in a second time within its lease, so each is killed once.
VICTIMS = [*INSTANCES, "coordinator", "coordinator", "esi", "esi", "esi"]
ACKED_MIN = 12          # a run goes on until so many STOREs were answered OK
PAUSE_MAX_S = 0.25      # between two kills
DEADLINE_S = 120        # for what must come to its end; nothing takes as long
# No instance is declared dead: the classic profile forgets the keys of dead ones, also those
# that were STOREd. Sessions of killed ESIs end soon.
COORDINATOR_OPTIONS = ["--lease", "1m", "--session-lease", "2s", "--distribution", "equitable-load"]
INSTANCE_OPTIONS = ["--entries", "50", "--entry-size", "20", "--replacement", "CIRC"]


class Failed(Exception):
    """A run did not come to its end."""


class Cluster:
    """The services of one run, each with its data and its address."""

    def __init__(self, directory, profile):
        self.directory, self.profile = directory, profile
        self.addresses = {"coordinator": "127.0.0.1:0"}
        self.services = {}

    @property
    def coordinator(self):
        return self.addresses["coordinator"]

    def spawn(self, name):
        """Nobody waits for it yet."""
        common = ["--profile", self.profile, "--data-dir", self.directory / name, "--listen",
                  self.addresses.get(name, "127.0.0.1:0")]
        if name == "coordinator":
            options = ["redistinto-coordinator", *common, *COORDINATOR_OPTIONS]
        else:
            options = ["redistinto-instance", "--name", name, "--coordinator", self.coordinator,
                       *common, *INSTANCE_OPTIONS]
        self.services[name] = Service(*options, directory=self.directory)

    def wait_ready(self, *names):
        for name in names:
            self.addresses[name] = self.services[name].wait_ready().address

    def start(self):
        self.spawn("coordinator")
        self.wait_ready("coordinator")
        for name in INSTANCES:
            self.spawn(name)
        self.wait_ready(*INSTANCES)

    def kill(self, names):
        """All of them first, then the wait for each."""
        for name in names:
            self.services[name].signal(signal.SIGKILL)
        for name in names:
            self.services[name].wait_exit()

    def cli(self, *arguments):
        return run("redistinto", "--coordinator", self.coordinator, "-o", "json", *arguments,
                   timeout_s=DEADLINE_S)

    def close(self):
        for service in self.services.values():
            with contextlib.suppress(ProcessLookupError):
                service.signal(signal.SIGKILL)
            service.wait_exit()


class Attempt:
    """One SET of a script and what became of it."""

    def __init__(self, key, value):
        self.key, self.value = key, value
        self.token = None       # of the lock, as far as the results told
        self.acked = False      # STORE was answered OK with this value


class Script:
    """GET, SET (now and then twice) and STORE of one key after another."""

    def __init__(self, rng, name):
        self.lines, self.of_line = [], {}
        for n in range(rng.randint(1, 4)):
            key = rng.choice(KEYS)
            attempts = [Attempt(key, f"{name}.{n}{letter}")
                        for letter in "ab"[:rng.randint(1, 2)]]
            for line in (f"GET {key}", *(f"SET {key} {a.value}" for a in attempts),
                         f"STORE {key}"):
                self.lines.append(line)
                self.of_line[len(self.lines)] = attempts

    def attempts(self):
        return list({id(a): a for attempts in self.of_line.values() for a in attempts}.values())

    def text(self):
        return "".join(f"{line}\n" for line in self.lines)

    def note(self, result):
        """One result of redistinto-esi."""
        attempts = self.of_line[result["line"]]
        if result["outcome"] != "ok":
            return
        if result["statement"] == "GET":
            for attempt in attempts:
                attempt.token = result["lock_token"]
        elif result["statement"] == "STORE" and not result.get("sets_lost"):
            attempts[-1].acked = True


class Worker(threading.Thread):
    """Runs script after script until it is told to stop; the last one runs to its end."""

    def __init__(self, cluster, rng, name):
        super().__init__(daemon=True)
        self.cluster, self.rng, self.name = cluster, rng, name
        self.lock = threading.Lock()
        self.process = None     # the one that runs
        self.stopping = threading.Event()
        self.attempts = []
        self.n_acked = 0
        self.error = None

    def run(self):
        n = 0
        try:
            while not self.stopping.is_set():
                self.run_script(Script(self.rng, f"{self.name}{n}"), f"{self.name}{n}")
                n += 1
        except Exception as error:  # told by whoever joins the thread
            self.error = error

    def run_script(self, script, name):
        self.attempts += script.attempts()
        path = self.cluster.directory / f"{name}.esi"
        path.write_text(script.text(), encoding="ascii")
        with subprocess.Popen(
                [binary("redistinto-esi"), "run", "--coordinator", self.cluster.coordinator, "-o",
                 "json", "--timeout", "20s", path], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            with self.lock:
                self.process = process
            for text in process.stdout:
                if text.endswith(b"\n"):
                    script.note(json.loads(text))
                    self.n_acked = sum(a.acked for a in self.attempts)
            with self.lock:
                self.process = None
        path.unlink()

    def kill(self):
        """Its ESI, if there is one; whether there was."""
        with self.lock:
            if self.process is None:
                return False
            self.process.kill()
            return True

    def end(self):
        self.stopping.set()
        self.join(DEADLINE_S)
        if self.is_alive():
            raise Failed(f"a script of worker {self.name} is blocked")
        if self.error is not None:
            raise self.error


class Outcome:
    """What one run came to."""

    def __init__(self):
        self.kills = {"coordinator": 0, "instance": 0, "esi": 0}
        self.acked = 0
        self.lost = []      # sentences
        self.blocked = []


def token_of(attempt):
    return -1 if attempt.token is None else attempt.token


def judge(attempts, finals):
    """Sentences about acknowledged values of which no trace is left. `finals`: value by key."""
    lost = []
    for key in KEYS:
        mine = [a for a in attempts if a.key == key]
        acked = max((a for a in mine if a.acked), key=token_of, default=None)
        found = next((a for a in mine if a.value == finals[key]), None)
        if acked is None or found is acked:
            continue
        # Of one whose GET was not heard of nobody knows the token: its ESI was killed.
        if found is None or (found.token is not None and found.token <= acked.token):
            lost.append(f"{key}: {acked.value!r} was stored under token {acked.token}, and "
                        f"{finals[key]!r} is there")
    return lost


def wait_unlocked(cluster, key):
    def is_free():
        result = cluster.cli("status", key)
        return result.code == 0 and result.json()["holder"] is None

    try:
        wait_until(is_free, f"the lock of {key} is free", DEADLINE_S)
    except AssertionError as late:
        raise Failed(str(late)) from late


def read_all(cluster):
    """Every key by a GET of its own, as the next ESI would find it."""
    path = cluster.directory / "last.esi"
    path.write_text("".join(f"GET {key}\n" for key in KEYS), encoding="ascii")
    try:
        result = run("redistinto-esi", "run", "--coordinator", cluster.coordinator, "-o", "json",
                     "--timeout", "1m", path, timeout_s=DEADLINE_S)
    except subprocess.TimeoutExpired as late:
        raise Failed("the last script is blocked") from late
    results = [json.loads(line) for line in result.out.splitlines()]
    if result.code != 0:
        raise Failed(f"the last script failed: {results[-1:]} {result.err.decode()}")
    return {r["key"]: r.get("value") for r in results if r["outcome"] == "ok"}


def strike(cluster, workers, victims, rng, outcome):
    """Kills these processes; services come back in the order in which they are named."""
    services = [name for name in victims if name != "esi"]
    for worker in rng.sample(workers, victims.count("esi")):
        outcome.kills["esi"] += worker.kill()   # none between two scripts
    if not services:
        return
    cluster.kill(services)
    for name in services:
        outcome.kills["coordinator" if name == "coordinator" else "instance"] += 1
        cluster.spawn(name)
    cluster.wait_ready(*services)


def strike_all(cluster, workers, rng, outcome):
    """Every victim once, with pauses: their lengths are part of the run."""
    pause = threading.Event()   # nobody sets it
    left = rng.sample(VICTIMS, len(VICTIMS))
    while left:
        pause.wait(rng.uniform(0, PAUSE_MAX_S))
        victims = left[:rng.choice((1, 1, 2))]
        if victims == ["coordinator"] * 2:
            victims.pop()
        strike(cluster, workers, victims, rng, outcome)
        del left[:len(victims)]


def play(cluster, rng, outcome):
    """The load and the kills."""
    workers = [Worker(cluster, random.Random(rng.random()), name) for name in "xyz"[:WORKERS]]
    try:
        for worker in workers:
            worker.start()
        strike_all(cluster, workers, rng, outcome)
        wait_until(lambda: sum(w.n_acked for w in workers) >= ACKED_MIN or
                   not all(w.is_alive() for w in workers), "enough was stored", DEADLINE_S)
        for worker in workers:
            worker.end()
    finally:
        for worker in workers:
            worker.stopping.set()
    return [attempt for worker in workers for attempt in worker.attempts]


def one_run(seed, number, keep=False):
    """The outcome of run `number`."""
    rng = random.Random(f"{seed}/{number}")
    outcome = Outcome()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="redistinto-faults-"))
    cluster = Cluster(directory, PROFILES[number % len(PROFILES)])
    try:
        cluster.start()
        attempts = play(cluster, rng, outcome)
        outcome.acked = sum(a.acked for a in attempts)
        for key in KEYS:
            wait_unlocked(cluster, key)
        outcome.lost = judge(attempts, read_all(cluster))
    except (Failed, AssertionError) as failure:
        outcome.blocked.append(str(failure))
    finally:
        cluster.close()
        kill_descendants()
        if keep and (outcome.lost or outcome.blocked):
            print(f"run {number}: kept {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return outcome


def summary_of(seed, outcomes):
    kills = {kind: sum(o.kills[kind] for o in outcomes) for kind in ("coordinator", "instance",
                                                                     "esi")}
    return {"seed": seed, "runs": len(outcomes), "kills": sum(kills.values()),
            "kills_of": kills, "acked": sum(o.acked for o in outcomes),
            "acked_lost": sum(len(o.lost) for o in outcomes),
            "blocked": sum(len(o.blocked) for o in outcomes)}


def positive(text):
    value = int(text)
    if not 1 <= value <= 1000000:
        raise argparse.ArgumentTypeError(f"'{text}' is out of range (1..1000000)")
    return value


def parse(arguments):
    parser = argparse.ArgumentParser(description="Kills the processes of the course's setup, and "
                                     "checks that nothing that was STOREd is lost and that nobody "
                                     "stays blocked. Exit code 1 when something was or does.")
    parser.add_argument("--runs", type=positive, default=10, help="default 10; 1..1000000")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--keep", action="store_true", help="keep logs and data of runs that fail")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    outcomes = []
    for number in range(options.runs):
        outcome = one_run(options.seed, number, options.keep)
        outcomes.append(outcome)
        for text in outcome.lost + outcome.blocked:
            print(f"run {number} of seed {options.seed}: {text}", file=sys.stderr)
        if options.output == "text":
            print(f"run {number}: {sum(outcome.kills.values())} kills, {outcome.acked} acked, "
                  f"{len(outcome.lost)} lost, {len(outcome.blocked)} blocked", flush=True)
    summary = summary_of(options.seed, outcomes)
    if options.output == "json":
        print(json.dumps(summary))
    return 1 if summary["acked_lost"] or summary["blocked"] else 0


if __name__ == "__main__":
    sys.exit(main())
