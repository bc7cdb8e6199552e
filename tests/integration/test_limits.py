"""Sizes at their limit and one past it, and bytes that are no requests, over real connections."""
import os
import socket
import time
import unittest

import tap
from cluster import wait_until

try:
    import grpc

    from api import DONE
    from fleet import APPLIED_NO, common, instance_pb, pb
    from one_fleet_case import MIB, OneFleetCase, identity, open_files
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, OneFleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, OneFleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

SERVICES = {"coordinator": ("CoordinatorService", "OpenSession"), "a": ("InstanceService", "Set")}


@unittest.skipIf(MISSING, MISSING)
class Limits(OneFleetCase):
    """The instance holds 2 MiB."""

    # ---- sizes ----

    def test_key_of_255_and_256_bytes(self):
        token = self.client.get(b"k" * 255).lock_token
        written = self.client.set(b"k" * 255, b"v", token)
        self.client.store(b"k" * 255, token, written.key.version)
        self.assertEqual(self.client.read(b"k" * 255).key.value, b"v")
        put = pb.PutStatement(key=b"k" * 256, value=b"v")
        for statement in ({"get": pb.GetStatement(key=b"k" * 256)},
                          {"put": put}, {"read": pb.ReadStatement(key=b"k" * 256)},
                          {"delete": pb.DeleteStatement(key=b"k" * 256)}):
            error = self.assert_fails("KEY_TOO_LONG", self.client.run, **statement)
            self.assertEqual(error.code, grpc.StatusCode.INVALID_ARGUMENT.value[0])
            self.assertEqual(error.routing.applied, APPLIED_NO)
        header = self.header(b"k" * 255)
        self.assertEqual(self.owner_.call("Read", header).result.value, b"v")
        header.key += b"k"
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, "KEY_TOO_LONG", self.owner_.stub.Set,
                            instance_pb.InstanceServiceSetRequest(header=header, value=b"v"))
        self.assert_serves()

    def test_empty_key(self):
        self.assert_fails("KEY_EMPTY", self.client.get, b"")
        self.assert_fails("KEY_EMPTY", self.client.put, b"", b"v")

    def test_value_of_1_mib_and_one_byte_more(self):
        value = os.urandom(MIB)
        self.client.put(b"v:max", value)
        self.assertEqual(self.client.read(b"v:max").key.value, value)
        error = self.assert_fails("VALUE_TOO_LARGE", self.client.put, b"v:max", value + b"x")
        self.assertEqual((error.code, error.routing.applied),
                         (grpc.StatusCode.INVALID_ARGUMENT.value[0], APPLIED_NO))
        owner_max = self.header(b"v:max")
        self.assertTrue(self.owner_.call("Put", owner_max, value=value).result.stored)
        self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, "VALUE_TOO_LARGE",
                            self.owner_.stub.Put, instance_pb.InstanceServicePutRequest(
                                header=self.header(b"v:max"), value=value + b"x"))
        self.assertEqual(self.cluster.status(b"v:max").value, value)
        self.client.delete(b"v:max")
        self.assert_serves()

    def test_value_that_cannot_fit(self):
        """D12: no side effect, and no placement of a new key."""
        self.client.put(b"n:0", b"x" * 2048)  # two entries: not to be evicted
        self.client.put(b"n:1", b"x" * MIB)
        self.client.put(b"n:4", b"small")  # now other keys' values of one entry have left
        for name in (b"n:0", b"n:1", b"n:4"):
            self.client.delete(name)
        free = self.owner_.status().entries_free
        self.client.put(b"n:0", b"x" * 2048)
        self.client.put(b"n:1", b"x" * MIB)
        error = self.assert_fails("NO_ENTRIES", self.client.put, b"n:2", b"x" * MIB)
        self.assertEqual((error.code, error.routing.applied),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], APPLIED_NO))
        self.assertEqual(self.cluster.status(b"n:2").owner, "")
        token = self.client.get(b"n:3").lock_token
        self.assert_fails("NO_ENTRIES", self.client.set, b"n:3", b"x" * MIB, token)
        self.assertEqual(self.cluster.status(b"n:3").owner, "")
        self.client.set(b"n:3", b"small", token)
        self.client.delete(b"n:1")
        self.client.set(b"n:3", b"x" * MIB, token)
        self.client.store(b"n:3", token)
        self.client.delete(b"n:3")
        self.client.delete(b"n:0")
        wait_until(lambda: self.owner_.status().entries_free == free, "all entries are free again")

    def test_session_names(self):
        stub = self.client.stub
        for name, is_valid in (("n" * 63, True), ("n" * 64, False), ("", False), ("a b", False),
                               ("ñ", False), ("A.b_c-9", True)):
            request = pb.OpenSessionRequest(
                name=name, request_id=common.RequestId(client_id=os.urandom(16), seq=1))
            if is_valid:
                opened = stub.OpenSession(request, timeout=10)
                stub.CloseSession(pb.CloseSessionRequest(session_id=opened.session_id), timeout=10)
            else:
                self.assert_refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD",
                                    stub.OpenSession, request)

    def test_session_without_a_request_id(self):
        stub = self.client.stub
        ids = {stub.OpenSession(pb.OpenSessionRequest(name="n"), timeout=10).session_id
               for _ in range(2)}
        self.assertEqual(len(ids), 2)
        for session_id in ids:
            stub.CloseSession(pb.CloseSessionRequest(session_id=session_id), timeout=10)

    def test_message_of_more_than_4_mib(self):
        for name, (service, method) in SERVICES.items():
            call = self.channel(name).unary_unary(f"/redistinto.v1.{service}/{method}", identity,
                                                  identity)
            started = time.monotonic()
            with self.assertRaises(grpc.RpcError) as caught:
                call(bytes(4 * MIB + 1), timeout=20)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertLess(time.monotonic() - started, 5)
            with self.assertRaises(grpc.RpcError) as caught:
                call(b"\x00" * 1024, timeout=20)  # the connection goes on
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        stream = self.client.stub.Execute(iter([pb.ExecuteRequest(
            statement_id=1, session_id=self.client.id,
            put=pb.PutStatement(key=b"big", value=bytes(4 * MIB)))]), timeout=20)
        with self.assertRaises(grpc.RpcError) as caught:
            list(stream)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assert_serves()

    # ---- what is no request ----

    def test_unknown_methods_fail_fast(self):
        for name, (service, _) in SERVICES.items():
            channel = self.channel(name)
            for path in (f"/redistinto.v1.{service}/Nothing", "/no.such.Service/Set", "/x"):
                started = time.monotonic()
                with self.assertRaises(grpc.RpcError) as caught:
                    channel.unary_unary(path, identity, identity)(b"", timeout=20)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED, path)
                self.assertLess(time.monotonic() - started, 3)
                with self.assertRaises(grpc.RpcError) as caught:
                    list(channel.stream_stream(path, identity, identity)(iter([b"x"]), timeout=20))
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED, path)
        self.assert_serves()

    def test_bytes_that_are_no_message(self):
        for name, (service, method) in SERVICES.items():
            call = self.channel(name).unary_unary(f"/redistinto.v1.{service}/{method}", identity,
                                                  identity)
            for payload in (b"\xff", b"\x0a\xff", b"\x00" * 100, bytes(range(256))):
                with self.assertRaises(grpc.RpcError) as caught:
                    call(payload, timeout=20)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        call = self.channel("coordinator").stream_stream(
            "/redistinto.v1.CoordinatorService/Execute", identity, pb.ExecuteResponse.FromString)
        with self.assertRaises(grpc.RpcError) as caught:
            list(call(iter([b"\xff\xff"]), timeout=20))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assert_serves()

    def test_garbage_on_the_port(self):
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        payloads = [b"", b"\x00", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", preface, preface[:10],
                    preface + os.urandom(2000), os.urandom(100_000), b"\x16\x03\x01\x02\x00",
                    preface + b"\xff\xff\xff" + bytes(1000),
                    preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 1000]
        before = {name: open_files(self.cluster.services[name].pid) for name in SERVICES}
        for address in self.addresses().values():
            host, port = address.rsplit(":", 1)
            for payload in payloads * 10:
                with socket.create_connection((host, int(port)), timeout=20) as connection:
                    try:
                        connection.sendall(payload)
                    except OSError:
                        pass  # it has hung up already
        self.assert_serves()
        for name in SERVICES:
            pid = self.cluster.services[name].pid
            wait_until(lambda n=name, p=pid: open_files(p) <= before[n] + 2,
                       f"{name} has closed what came and went")
        self.assertEqual(self.cluster.cli("health").code, 0)

    def test_request_without_deadline_ends(self):
        """The server gives it its default; a wrong header ends it at once."""
        with self.assertRaises(grpc.RpcError) as caught:
            self.owner_.stub.Set(instance_pb.InstanceServiceSetRequest())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_statement_without_kind(self):
        error = self.assert_fails("INVALID_FIELD", self.client.run)
        self.assertEqual(error.code, grpc.StatusCode.INVALID_ARGUMENT.value[0])
        self.assertEqual(self.client.get(b"still").outcome, DONE)

    def test_many_statements_in_flight_on_one_stream(self):
        n = 500
        requests = []
        for i in range(n):
            self.client.seq += 1
            requests.append(pb.ExecuteRequest(
                statement_id=i + 1, session_id=self.client.id,
                request_id=common.RequestId(client_id=self.client.client_id,
                                            seq=self.client.seq),
                put=pb.PutStatement(key=b"many:%d" % (i % 10), value=b"%d" % i)))
        answers = list(self.client.stub.Execute(iter(requests), timeout=60))
        self.assertEqual(sorted(a.statement_id for a in answers), list(range(1, n + 1)))
        self.assertEqual({a.WhichOneof("outcome") for a in answers}, {"result"})
        for i in range(10):
            self.assertEqual(self.client.read(b"many:%d" % i).key.value, b"%d" % (n - 10 + i))


if __name__ == "__main__":
    tap.main()
