"""A coordinator and instances that a test starts one by one, and what talks to them.

`Fleet` gives each process its own options, data, address and process group; `Script` is a running
redistinto-esi; `LiveSession` keeps its lease; `Owner` sends operations straight to an instance.
Needs gRPC for all but `Fleet` and `Script`: raises unittest.SkipTest as api.py does.
"""
import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import grpc

import api
from cluster import DEADLINE_S, Service, binary, is_running, run, wait_until

pb, common, instance_pb = api.pb, api.common_pb2, api.instance_pb2
APPLIED_NO, APPLIED_MAYBE = common.APPLIED_NO, common.APPLIED_MAYBE
# The time for a connection attempt is GRPC_ARG_MIN_RECONNECT_BACKOFF_MS.
RECONNECT_SOON = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200),
                  ("grpc.min_reconnect_backoff_ms", 2000),
                  ("grpc.dns_min_time_between_resolutions_ms", 100),
                  ("grpc.use_local_subchannel_pool", 1)]
STATES = {api.common_pb2.MemberState.Value(f"MEMBER_STATE_{name.upper()}"): name
          for name in ("joining", "alive", "dead", "left")}


class Fleet:
    """One coordinator and its instances. Options are those of the coordinator."""

    def __init__(self, *options, instances="abc", instance_options=()):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="redistinto-test-"))
        (self.directory / "data").mkdir()
        self.options = [str(option) for option in options]
        self.instance_options = [str(option) for option in instance_options]
        self.wanted = instances
        self.services = {}
        self.addresses = {}
        self.coordinator = None
        self.channel = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def start(self):
        self.start_coordinator()
        for name in self.wanted:
            self.start_instance(name)
        return self

    def data_dir(self, name):
        return self.directory / "data" / name

    def start_coordinator(self, *options):
        """At its old address if it had one; returns when it serves."""
        service = Service("redistinto-coordinator", "--listen", self.coordinator or "127.0.0.1:0",
                          "--data-dir", self.data_dir("coordinator"), *self.options, *options,
                          directory=self.directory)
        self.services["coordinator"] = service
        self.coordinator = service.wait_ready().address
        if self.channel is None:
            self.channel = grpc.insecure_channel(self.coordinator, RECONNECT_SOON)
        else:  # what is left of the old connection fails one call
            wait_until(lambda: self.members() is not None, "the coordinator is found again")
        return service

    def spawn_instance(self, name, *options, listen=None, data_dir=None):
        """A process that nobody waits for and that does not count as the one of this name."""
        return Service("redistinto-instance", "--name", name, "--listen",
                       listen or "127.0.0.1:0", "--coordinator", self.coordinator, "--data-dir",
                       data_dir or self.data_dir(name), *self.instance_options, *options,
                       directory=self.directory)

    def start_instance(self, name, *options, listen=None):
        """At its old address unless told otherwise; returns when it serves."""
        service = self.spawn_instance(name, *options, listen=listen or self.addresses.get(name))
        self.services[name] = service
        self.addresses[name] = service.wait_ready().address
        return service

    def kill(self, name):
        self.services.pop(name).kill()

    def stop(self, name):
        """SIGTERM; the exit status."""
        return self.services.pop(name).stop()

    def pause(self, name):
        """SIGSTOP; returns when the process has stopped."""
        pid = self.services[name].pid
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: not is_executing(pid), f"{name} has stopped")

    def resume(self, name):
        self.services[name].signal(signal.SIGCONT)

    def cli(self, *arguments, **keywords):
        return run("redistinto", "--coordinator", self.coordinator, *arguments, **keywords)

    def status(self, key):
        """AdminService.KeyStatus."""
        return api.admin_pb2_grpc.AdminServiceStub(self.channel).KeyStatus(
            api.admin_pb2.AdminServiceKeyStatusRequest(key=key), timeout=10)

    def members(self):
        """InstanceInfo by name, in the order of registration; None when nobody answers."""
        stub = api.admin_pb2_grpc.AdminServiceStub(self.channel)
        try:
            listed = stub.ListInstances(api.admin_pb2.AdminServiceListInstancesRequest(),
                                        timeout=10)
        except grpc.RpcError:
            return None
        return {member.name: member for member in listed.instances}

    def state(self, name):
        members = self.members()
        return STATES[members[name].state] if members and name in members else None

    def wait_state(self, name, state):
        wait_until(lambda: self.state(name) == state, f"{name} is {state}")

    def incarnations(self):
        return {name: member.incarnation for name, member in self.members().items()}

    def session(self, name="test"):
        return LiveSession(self.coordinator, name)

    def owner(self, name):
        return Owner(self.addresses[name])

    def script(self, text, name="script.esi", *options):
        """Starts redistinto-esi on a script of this text, with JSON output."""
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Script(self.coordinator, [path], *options)

    def esi(self, text, name="script.esi", *options):
        """Runs such a script to its end."""
        return self.script(text, name, *options).wait()

    def close(self):
        if self.channel is not None:
            self.channel.close()
        for service in self.services.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(service.pid, signal.SIGKILL)
            service.wait_exit()
        shutil.rmtree(self.directory, ignore_errors=True)


def is_executing(pid):
    """Whether the process runs and is not stopped by a signal."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1")
    return is_running(pid) and text[text.rindex(")") + 2] != "T"


class Script:
    """A running redistinto-esi with JSON output, one or more scripts."""

    def __init__(self, coordinator, paths, *options):
        self.process = subprocess.Popen(
            [binary("redistinto-esi"), "run", "--coordinator", coordinator, "-o", "json",
             *map(str, options), *map(str, paths)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        self.code, self.results, self.err = None, [], ""

    def wait_line(self, line, outcome="ok"):
        """Reads results up to that of a line of the script."""
        while True:
            text = self.process.stdout.readline()
            if not text:
                raise AssertionError(f"the script ended before line {line}: {self.results}\n"
                                     f"{self.process.stderr.read().decode()}")
            self.results.append(json.loads(text))
            if (self.results[-1]["line"], self.results[-1]["outcome"]) == (line, outcome):
                return self.results[-1]

    def wait_event(self, event):
        """Reads up to an event of the planner; needs --trace."""
        while True:
            text = self.process.stdout.readline()
            if not text:
                raise AssertionError(f"the scripts ended before {event}: {self.results}\n"
                                     f"{self.process.stderr.read().decode()}")
            self.results.append(json.loads(text))
            if self.results[-1].get("event") == event:
                return self.results[-1]

    def wait(self):
        """Reads to the end; self.code is the exit status."""
        try:
            out, err = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.results += [json.loads(text) for text in out.splitlines()]
        self.code, self.err = self.process.returncode, err.decode()
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def outcomes(self):
        """(line, outcome, reason) of each result."""
        return [(r["line"], r["outcome"], r["reason"]) for r in self.results]

    def of_line(self, line):
        """The last result of a line."""
        return [r for r in self.results if r["line"] == line][-1]


class LiveSession(api.Session):
    """A session whose lease is kept by a thread, as a program of somebody would do it."""

    def __init__(self, address, name="test"):
        super().__init__(address, name)
        self.ended = threading.Event()
        self.exchanges = queue.SimpleQueue()
        self.exchange_id = 0
        self.lease_s = 1.0
        self.thread = threading.Thread(target=self._keep_alive, daemon=True)
        self.thread.start()

    def _keep_alive(self):
        with contextlib.suppress(grpc.RpcError, ValueError, StopIteration):
            answers = self.stub.KeepAlive(iter(self.exchanges.get, None))
            while True:
                self.exchange_id += 1
                self.exchanges.put(pb.KeepAliveRequest(exchange_id=self.exchange_id,
                                                       session_id=self.id))
                answer = next(answers)
                if answer.WhichOneof("outcome") == "error":
                    return
                self.lease_s = answer.result.lease_ms / 1000
                if self.ended.wait(self.lease_s / 4):
                    return

    def abandon(self):
        """Vanishes, as a process does that is killed: nothing more is sent, nothing is closed."""
        if self.ended.is_set():
            return
        self.ended.set()
        self.exchanges.put(None)
        self.requests.put(None)
        self.channel.close()
        self.thread.join()

    def lock(self, key):
        """GET, and its turn if another session holds the key."""
        while True:
            got = self.get(key)
            if got.outcome == api.DONE:
                return got
            self.wait_turn(key)

    def close(self):
        if self.ended.is_set():
            return
        self.ended.set()
        self.exchanges.put(None)
        self.thread.join()
        super().close()


class Owner:
    """Operations sent straight to one instance."""

    VERBS = {"Set": instance_pb.InstanceServiceSetRequest,
             "Store": instance_pb.InstanceServiceStoreRequest,
             "Put": instance_pb.InstanceServicePutRequest,
             "Delete": instance_pb.InstanceServiceDeleteRequest,
             "Read": instance_pb.InstanceServiceReadRequest}

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, RECONNECT_SOON)
        self.stub = api.instance_pb2_grpc.InstanceServiceStub(self.channel)

    def status(self):
        return self.stub.Status(instance_pb.InstanceServiceStatusRequest(), timeout=10)

    def call(self, verb, header, timeout=10, **fields):
        return getattr(self.stub, verb)(self.VERBS[verb](header=header, **fields), timeout=timeout)

    def begin(self, verb, header, timeout=30, **fields):
        """The future of a call that is under way."""
        return getattr(self.stub, verb).future(self.VERBS[verb](header=header, **fields),
                                               timeout=timeout, wait_for_ready=True)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def pass_time(seconds, why):
    """The length of a fault, which is part of a scenario: nothing is waited for."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, why, deadline_s=seconds + DEADLINE_S)
