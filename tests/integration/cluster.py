"""Real processes for the integration tests.

`Cluster` runs `redistinto dev` on ephemeral ports; `Service` runs one binary of its own. None
outlives the tests, whatever happened: the test's process adopts what its children leave behind
(PR_SET_CHILD_SUBREAPER), and kill_descendants(), which tap.py calls after each class, finds all of
it. Nothing sleeps to give something time: `wait_until` polls a condition up to a deadline.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REDISTINTO_BUILD", ROOT / "build"))
DEADLINE_S = 40
POLL_S = 0.01

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

# Options of the binaries must not come in by the back door.
for variable in [v for v in os.environ if v.startswith("REDISTINTO_")]:
    del os.environ[variable]
os.environ["REDISTINTO_CONFIG"] = "/dev/null"

# AddressSanitizer keeps 256 MiB of freed memory from being used again, which tests that look at the
# memory of a process could not tell from a leak. What the environment says wins.
os.environ["ASAN_OPTIONS"] = ":".join(
    filter(None, ["quarantine_size_mb=8", os.environ.get("ASAN_OPTIONS")]))


def binary(name):
    return str(BUILD / name)


def wait_until(condition, what, deadline_s=DEADLINE_S):
    """The first true value of condition(); fails with `what` after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(POLL_S)


def _stat_fields(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1")
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def is_running(pid):
    """Whether any thread of the process executes. A killed process is a zombie by its first thread
    while others still end, and until then it holds its files and locks."""
    fields = _stat_fields(pid)
    if fields is None:
        return False
    try:
        return fields[0] not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except FileNotFoundError:
        return False


def descendants():
    """Pids of all processes below this one, zombies aside."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat_fields(entry)
            if fields and fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [os.getpid()]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def kill_descendants():
    """Leaves no process below this one; returns the pids that were still there."""
    left = descendants()
    while True:
        pids = descendants()
        if not pids:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(POLL_S)
    return left


class Result:
    """What a finished command said."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def text(self):
        return self.out.decode()

    def json(self):
        return json.loads(self.out)


def run(program, *arguments, env=None, timeout_s=DEADLINE_S):
    """Runs a binary of the project to its end."""
    done = subprocess.run([binary(program), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=timeout_s, check=False,
                          env={**os.environ, **(env or {})})
    return Result(done)


class Service:
    """One binary, started by hand, whose ready line tells its address."""

    def __init__(self, program, *arguments, directory):
        self.arguments = [binary(program), *map(str, arguments)]
        self.log = pathlib.Path(directory) / f"{program}-{time.monotonic_ns()}.log"
        read_end, write_end = os.pipe()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*self.arguments, "--ready-fd", str(write_end)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, pass_fds=[write_end], start_new_session=True)
        os.close(write_end)
        self.ready = open(read_end, encoding="ascii")
        self.address = None

    @property
    def pid(self):
        return self.process.pid

    def logged(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_ready(self):
        """Blocks until the line comes; the end of the pipe means that the process has ended."""
        line = self.ready.readline()
        self.ready.close()
        if not line.startswith("ready "):
            raise AssertionError(f"{self.arguments[0]} did not serve:\n{self.logged()}")
        self.address = line.split()[1]
        return self

    def wait_exit(self, timeout_s=DEADLINE_S):
        return self.process.wait(timeout=timeout_s)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait_exit()

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.wait_exit()


class Cluster:
    """`redistinto dev` on ephemeral ports, with its data in a directory of the test."""

    def __init__(self, *options, instances=3, directory=None):
        self.owns_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="redistinto-test-"))
        self.options = [str(option) for option in options]
        self.instances_wanted = instances
        self.dev = None
        self.info = None
        self.services = {}

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    @property
    def ready_file(self):
        return self.directory / "ready.json"

    @property
    def data_dir(self):
        return self.directory / "data"

    def start(self):
        self.out = open(self.directory / "dev.out", "wb")
        self.err = open(self.directory / "dev.err", "wb")
        self.dev = subprocess.Popen(
            [binary("redistinto"), "dev", "--base-port", "0", "--instances",
             str(self.instances_wanted), "--data-dir", str(self.data_dir), "--ready-file",
             str(self.ready_file), *self.options],
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        wait_until(lambda: self.ready_file.exists() or self.dev.poll() is not None,
                   "dev serves or ends")
        if not self.ready_file.exists():
            raise AssertionError(f"dev ended with {self.dev.returncode}:\n{self.said()}")
        self.info = json.loads(self.ready_file.read_text(encoding="utf-8"))
        self.by_name = {member["name"]: member for member in self.info["instances"]}
        return self

    def said(self):
        """What dev wrote to stderr so far."""
        return (self.directory / "dev.err").read_text(encoding="utf-8", errors="replace")

    def shown(self):
        """What dev wrote to stdout so far."""
        return (self.directory / "dev.out").read_text(encoding="utf-8")

    @property
    def coordinator(self):
        return self.info["coordinator"]

    def pids(self):
        return [self.info["coordinator_pid"], *(m["pid"] for m in self.info["instances"])]

    def cli(self, *arguments, **keywords):
        return run("redistinto", "--coordinator", self.coordinator, *arguments, **keywords)

    def pid_of(self, name):
        if name in self.services:
            return self.services[name].pid
        return self.info["coordinator_pid"] if name == "coordinator" else self.by_name[name]["pid"]

    def kill(self, name):
        """SIGKILL; returns when the process is gone."""
        if name in self.services:
            self.services.pop(name).kill()
            return
        pid = self.pid_of(name)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid), f"{name} is gone")

    def pause(self, name):
        os.kill(self.pid_of(name), signal.SIGSTOP)

    def resume(self, name):
        os.kill(self.pid_of(name), signal.SIGCONT)

    def restart(self, name, *options):
        """A dead process again, on its data and at its address."""
        self.services[name] = self.service(name, *options).wait_ready()

    def service(self, name, *options):
        """The process of this name as dev tells to start it by hand."""
        data = ["--data-dir", self.data_dir / name]
        if name == "coordinator":
            return Service("redistinto-coordinator", "--listen", self.coordinator, *data, *options,
                           directory=self.directory)
        address = self.by_name[name]["address"]
        return Service("redistinto-instance", "--name", name, "--listen", address, "--coordinator",
                       self.coordinator, *data, *options, directory=self.directory)

    def states(self):
        """State of each instance by name, as the coordinator sees it; None when it cannot say."""
        result = self.cli("instances", "-o", "json")
        if result.code != 0:
            return None
        return {i["name"]: i["state"] for i in result.json()["instances"]}

    def wait_state(self, name, state, deadline_s=DEADLINE_S):
        wait_until(lambda: (self.states() or {}).get(name) == state, f"{name} is {state}",
                   deadline_s)

    def stop(self, number=signal.SIGTERM):
        """Ends dev by a signal; its exit status."""
        self.dev.send_signal(number)
        return self.dev.wait(timeout=DEADLINE_S)

    def close(self):
        """Ends every process of the cluster, in any state of it."""
        for service in self.services.values():
            service.process.kill()
            service.wait_exit()
        if self.dev is not None:
            self._end_dev()
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _end_dev(self):
        if self.dev.poll() is None:
            for pid in self.pids() if self.info else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.dev.terminate()
            try:
                self.dev.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.dev.kill()
                self.dev.wait()
        self.out.close()
        self.err.close()
