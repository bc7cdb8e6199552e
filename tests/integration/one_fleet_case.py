"""Base of the tests that do their worst to one coordinator and one instance, `a`, of 2 MiB."""
import os
import pathlib

import grpc

import api
from api import DONE
from cluster import wait_until
from fleet import APPLIED_NO, Fleet, common, instance_pb
from fleet_case import FleetCase

INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
KIB, MIB = 1024, 1024 * 1024
# How much more memory than during half of the same bad input is still no leak.
FLAT_BYTES = 16 * MIB


def identity(data):
    return data


class OneFleetCase(FleetCase):
    """The processes live as long as the class: what a test does to them must not harm the next."""

    INSTANCE_OPTIONS = ["--entries", "2048", "--entry-size", "1KiB"]

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(
            Fleet(instances="a", instance_options=cls.INSTANCE_OPTIONS))
        cls.owner_ = cls.enterClassContext(cls.cluster.owner("a"))
        cls.cluster_id = cls.owner_.status().cluster_id

    def setUp(self):
        self.client = self.cluster.session("client")
        self.addCleanup(self.client.close)

    def addresses(self):
        return {"coordinator": self.cluster.coordinator, "a": self.cluster.addresses["a"]}

    def channel(self, name):
        """A connection of its own."""
        channel = grpc.insecure_channel(self.addresses()[name],
                                        [("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return channel

    def header(self, key, **fields):
        """What an operation straight at the owner of the key says of its route."""
        status = self.cluster.status(key)
        self.client.seq += 1
        return instance_pb.OperationHeader(**{
            "cluster_id": self.cluster_id, "key": key, "epoch": status.epoch, "owner": "a",
            "incarnation": self.cluster.incarnations()["a"],
            "request_id": common.RequestId(client_id=self.client.client_id, seq=self.client.seq),
            **fields})

    def assert_serves(self):
        """A statement through the coordinator, and one straight at the owner."""
        self.assertEqual(self.client.put(b"serves", b"yes").outcome, DONE)
        self.assertEqual(self.client.read(b"serves").key.value, b"yes")
        self.assertEqual(self.owner_.call("Read", self.header(b"serves")).result.value, b"yes")

    def assert_refused(self, code, reason, call, *arguments, **keywords):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*arguments, timeout=10, **keywords)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        routing, _ = api.routing_error(caught.exception)
        self.assertEqual((routing.reason, routing.applied), (reason, APPLIED_NO))

    def assert_code(self, code, call, *arguments, **keywords):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*arguments, timeout=20, **keywords)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())

    def resident_bytes(self):
        """Of both processes, by name."""
        return {name: resident_bytes(self.cluster.services[name].pid)
                for name in ("coordinator", "a")}

    def assert_flat(self, do, n):
        """Memory is after 2 n times what it was during the first n; both processes serve."""
        most = self.resident_bytes()
        for _ in range(n):
            do()
            most = {name: max(most[name], size) for name, size in self.resident_bytes().items()}
        for _ in range(n):
            do()
        for name, size in most.items():
            wait_until(lambda n=name, s=size: self.resident_bytes()[n] < s + FLAT_BYTES,
                       f"{name} has no more memory than after {n} of {2 * n} times")
        self.assert_serves()


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * KIB
    raise AssertionError(f"process {pid} has no memory")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
