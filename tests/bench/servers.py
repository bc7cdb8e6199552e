"""The servers that are measured: each on a free port of loopback, with its data in a temporary
directory, and gone when its `with` block ends.

`start_cpu()`/`cpu_s()` tell how much processor time a process has used in between.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

# pylint: disable=wrong-import-position
import api  # noqa: E402
import cluster  # noqa: E402
import fleet  # noqa: E402

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SET_PATH = "/redistinto.v1.InstanceService/Set"
VALUE = b"v" * 100
ENTRIES = 262144
START_S = 20
PLACE_S = 300


class Missing(Exception):
    """A program of another package is not installed; the text names the package."""


def find_program(name, package):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if path is None:
        raise Missing(f"{name} is missing: install {package} (deploy/packages/bench.txt)")
    return path


def cpu_s(pid):
    """Processor seconds that this process has used, all threads, system calls included."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1")
    fields = text[text.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_port(port, process, name):
    end = time.monotonic() + START_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{name} does not serve")
        time.sleep(cluster.POLL_S)


class Process:
    """A server in a directory of its own. Subclasses say how it is started."""

    name = "?"

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="redistinto-bench-")
        self.process = None

    def command(self):
        raise NotImplementedError

    def wait_ready(self):
        raise NotImplementedError

    def __enter__(self):
        try:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, cwd=self.directory, start_new_session=True)
            self.wait_ready()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_s(self):
        return cpu_s(self.process.pid)


class RawEcho(Process):
    """tests/bench/raw_echo.c, answering what an instance answered to the same request."""

    name = "raw echo"

    def __init__(self, response):
        super().__init__()
        self.response = pathlib.Path(self.directory) / "response"
        self.response.write_bytes(response)
        self.address = None

    def command(self):
        return [cluster.binary("tests/bench/bench_raw_echo"), SET_PATH, str(self.response)]

    def wait_ready(self):
        words = self.process.stdout.readline().decode().split()
        if not words:
            raise RuntimeError("bench_raw_echo does not serve")
        self.address = words[1]


class Redis(Process):
    """Without persistence, or with every write on disk before it is answered."""

    def __init__(self, is_durable):
        super().__init__()
        self.name = "Redis, appendfsync always" if is_durable else "Redis"
        self.is_durable = is_durable
        self.port = free_port()

    def command(self):
        words = [find_program("redis-server", "redis-server"), "--bind", "127.0.0.1", "--port",
                 str(self.port), "--save", "", "--dir", self.directory]
        if self.is_durable:
            words += ["--appendonly", "yes", "--appendfsync", "always"]
        return words

    def wait_ready(self):
        wait_port(self.port, self.process, "redis-server")


class Etcd(Process):
    """One member of its own."""

    name = "etcd"

    def __init__(self):
        super().__init__()
        self.port, self.peer_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"

    def command(self):
        client, peer = f"http://{self.address}", f"http://127.0.0.1:{self.peer_port}"
        return [find_program("etcd", "etcd-server"), "--name", "bench", "--data-dir",
                self.directory + "/data", "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"bench={peer}",
                "--logger", "zap", "--log-level", "error"]

    def wait_ready(self):
        wait_port(self.port, self.process, "etcd")


class Ours:
    """A coordinator and one instance."""

    name = "ours"

    def __init__(self):
        self.fleet = fleet.Fleet(instances="a", instance_options=("--entries", ENTRIES))

    def __enter__(self):
        self.fleet.start()
        self.session = self.fleet.session("bench")
        self.incarnation = self.fleet.incarnations()["a"]
        with self.fleet.owner("a") as owner:
            self.cluster_id = owner.status().cluster_id
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.session.close()
        self.fleet.close()

    @property
    def coordinator(self):
        return self.fleet.coordinator

    @property
    def address(self):
        return self.fleet.addresses["a"]

    def cpu_s(self):
        """Of the instance."""
        return cpu_s(self.fleet.services["a"].pid)

    @property
    def pids(self):
        return {"coordinator": self.fleet.services["coordinator"].pid,
                "instance": self.fleet.services["a"].pid}

    def place(self, key):
        """Gives the key an owner and a value; the number of the ownership."""
        return self.session.put(key, VALUE).epoch

    def place_many(self, n):
        """Gives so many keys an owner and a value; the numbers of their ownership, by key."""
        made = self.fleet.cli("--config", "/dev/null", "-o", "json", "bench", "--keys", n,
                              "--operations", 1, "--path", "pipelined", "--batch", 256, "--concurrency", 1024,
                              timeout_s=PLACE_S)
        if made.code != 0:
            raise RuntimeError(f"keys cannot be placed: {made.err.decode(errors='replace')}")
        return {key.key: key.epoch for key in self._listed(b"bench-")}

    def _listed(self, prefix):
        stub = api.admin_pb2_grpc.AdminServiceStub(self.fleet.channel)
        request = api.admin_pb2.AdminServiceListKeysRequest(prefix=prefix)
        more = True
        while more:
            page = stub.ListKeys(request, timeout=10)
            yield from page.keys
            more = page.more
            request.after = page.keys[-1].key if page.keys else b""

    def batch(self, kind, epochs, keys):
        """A batch that writes these keys, as bytes."""
        return fleet.instance_pb.InstanceServicePipelineRequest(
            batch_id=1, cluster_id=self.cluster_id, owner="a", incarnation=self.incarnation,
            operations=[fleet.instance_pb.PipelineOperation(
                kind=f"PIPELINE_OPERATION_KIND_{kind}", key=key, value=VALUE, epoch=epochs[key])
                        for key in keys]).SerializeToString()

    def header(self, key, epoch):
        return fleet.instance_pb.OperationHeader(
            cluster_id=self.cluster_id, key=key, epoch=epoch, owner="a",
            incarnation=self.incarnation)

    def set_request(self, key):
        """A SET of this key that may be repeated: it has no request id."""
        return fleet.instance_pb.InstanceServiceSetRequest(
            header=self.header(key, self.place(key)), value=VALUE)

    def set(self, request):
        """The answer, as bytes."""
        with self.fleet.owner("a") as owner:
            return owner.stub.Set(request, timeout=10).SerializeToString()

    def n_operations(self):
        with self.fleet.owner("a") as owner:
            return owner.status().n_operations


def stop_all():
    cluster.kill_descendants()


__all__ = ["Etcd", "Missing", "Ours", "RawEcho", "Redis", "api", "cluster", "find_program",
           "stop_all"]
