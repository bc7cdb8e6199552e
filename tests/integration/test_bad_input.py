"""Requests that no good client sends, through the coordinator and straight at an owner.

After each of them the same processes answer a normal statement on both paths; where a request
could leave something behind, memory is looked at too. Sizes are in test_limits.py.
"""
import contextlib
import os
import unittest

import tap

try:
    import grpc

    import api
    from fleet import APPLIED_NO, common, instance_pb, pb
    from one_fleet_case import EXHAUSTED, INVALID, KIB, MIB, OneFleetCase, identity
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, OneFleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, OneFleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

U32_MAX, U64_MAX = 2**32 - 1, 2**64 - 1
COORDINATOR, INSTANCE, ADMIN = (f"/redistinto.v1.{name}Service/"
                                for name in ("Coordinator", "Instance", "Admin"))
ODD_KEYS = [b"\x00", b"a\x00b", b"\xff\xfe\xc0\x80", b"\xed\xa0\x80", b"\n\r\t \x1b[31m", b"%s%n",
            b"../../x", bytes(range(255))]
NO_NAMES = [b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"a b", b"a\nb", b"n" * 64, b"x" * MIB]


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def number_field(number, value):
    return varint(number << 3) + varint(value)


def bytes_field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


class Raw(OneFleetCase):
    """Requests as bytes."""

    def raw(self, name, path):
        return self.channel(name).unary_unary(path, identity, identity)

    def pipeline(self, *requests):
        """The answers, parsed; requests may be bytes."""
        call = self.channel("a").stream_stream(
            INSTANCE + "Pipeline", lambda r: r if isinstance(r, bytes) else r.SerializeToString(),
            instance_pb.InstanceServicePipelineResponse.FromString)
        return list(call(iter(requests), timeout=20))

    def batch(self, *operations, **fields):
        return instance_pb.InstanceServicePipelineRequest(
            operations=operations, **{"batch_id": 1, "cluster_id": self.cluster_id, "owner": "a",
                                      "incarnation": self.cluster.incarnations()["a"], **fields})


@unittest.skipIf(MISSING, MISSING)
class BadKeys(Raw):
    """Keys are any 1 to 255 bytes; no others reach a core."""

    def test_any_bytes_are_a_key_on_both_paths(self):
        for i, key in enumerate(ODD_KEYS):
            token = self.client.get(key).lock_token
            self.client.set(key, b"%d" % i, token)
            self.client.store(key, token)
            read = self.owner_.call("Read", self.header(key))
            self.assertEqual(read.result.value, b"%d" % i, key)
            self.owner_.call("Put", self.header(key), value=key)
        for key in ODD_KEYS:
            self.assertEqual(self.client.read(key).key.value, key)
        listed = self.cluster.cli("keys", "-o", "json")
        self.assertEqual(listed.code, 0)
        self.assertEqual(len(listed.json()["keys"]), len(ODD_KEYS))
        shown = self.cluster.cli("keys")
        self.assertNotIn(b"\x1b", shown.out)
        for key in ODD_KEYS:
            self.client.delete(key)
        self.assert_serves()

    def test_no_key_and_too_long_a_key_on_every_method(self):
        stub, admin = self.client.stub, api.admin_pb2_grpc.AdminServiceStub(self.cluster.channel)
        for key, reason in ((b"", "KEY_EMPTY"), (b"k" * 256, "KEY_TOO_LONG")):
            calls = [(getattr(self.owner_.stub, verb), request(header=self.good_header(key)))
                     for verb, request in self.owner_.VERBS.items()]
            calls += [
                (stub.Lock, pb.LockRequest(session_id=self.client.id, key=key,
                                           request_id=self.client._next_id())),
                (stub.Unlock, pb.UnlockRequest(session_id=self.client.id, key=key, lock_token=1)),
                (stub.Route, pb.RouteRequest(key=key, operation=pb.ROUTE_OPERATION_READ)),
                (admin.KeyStatus, api.admin_pb2.AdminServiceKeyStatusRequest(key=key))]
            for call, request in calls:
                self.assert_refused(INVALID, reason, call, request)
            for statement in ({"set": pb.SetStatement(key=key, value=b"v")},
                              {"store": pb.StoreStatement(key=key)},
                              {"await_turn": pb.AwaitStatement(key=key)}):
                error = self.assert_fails(reason, self.client.run, **statement)
                self.assertEqual(error.routing.applied, APPLIED_NO)
        with self.assertRaises(grpc.RpcError) as caught:
            next(stub.WatchRoutes(pb.WatchRoutesRequest(prefix=b"k" * 256), timeout=10))
        self.assertEqual(caught.exception.code(), INVALID)
        self.assert_serves()

    def good_header(self, key):
        return instance_pb.OperationHeader(cluster_id=self.cluster_id, key=key, epoch=1, owner="a",
                                           incarnation=1)


@unittest.skipIf(MISSING, MISSING)
class BadValues(Raw):
    """Values of no byte, and of too many, by every verb that carries one."""

    def test_value_of_0_bytes_is_a_value(self):
        token = self.client.get(b"empty").lock_token
        self.client.set(b"empty", b"", token)
        self.client.store(b"empty", token)
        read = self.owner_.call("Read", self.header(b"empty"))
        self.assertTrue(read.result.HasField("value"))
        self.assertTrue(self.owner_.call("Put", self.header(b"empty"), value=b"").result.stored)
        self.assertTrue(self.client.read(b"empty").key.HasField("value"))
        self.client.delete(b"empty")
        self.assertFalse(self.cluster.status(b"empty").HasField("value"))
        self.assert_serves()

    def test_values_past_1_mib(self):
        value = bytes(MIB + 1)
        self.client.put(b"v", b"small")

        def all_verbs():
            error = self.assert_fails("VALUE_TOO_LARGE", self.client.set, b"v", value)
            self.assertEqual(error.routing.applied, APPLIED_NO)
            self.assertEqual(self.client.set(b"v", value[:-1]).outcome, api.DONE)
            self.assert_refused(INVALID, "VALUE_TOO_LARGE", self.owner_.stub.Set,
                                instance_pb.InstanceServiceSetRequest(header=self.header(b"v"),
                                                                      value=value))
            self.owner_.call("Set", self.header(b"v"), value=value[:-1])
            put = instance_pb.PIPELINE_OPERATION_KIND_PUT
            epoch = self.cluster.status(b"v").epoch
            answer, = self.pipeline(self.batch(
                instance_pb.PipelineOperation(kind=put, key=b"v", epoch=epoch, value=value),
                instance_pb.PipelineOperation(kind=put, key=b"v", epoch=epoch, value=b"small")))
            failed, done = answer.result.results
            self.assertEqual(failed.error.routing.reason, "VALUE_TOO_LARGE")
            self.assertTrue(done.stored)

        self.assert_flat(all_verbs, 5)
        self.assertEqual(self.client.read(b"v").key.value, b"small")
        self.client.delete(b"v")

    def test_route_for_a_value_that_nobody_can_have(self):
        for size in (MIB + 1, U64_MAX):
            self.assert_code(INVALID, self.client.stub.Route, pb.RouteRequest(
                key=b"huge", operation=pb.ROUTE_OPERATION_PUT, value_size=size))
        self.assertEqual(self.cluster.status(b"huge").owner, "")
        self.assert_serves()


@unittest.skipIf(MISSING, MISSING)
class BadFields(Raw):
    """Ids, names, enumerators and numbers."""

    def test_ids_of_another_length(self):
        self.client.put(b"k", b"v")
        stub = self.client.stub
        for length in (1, 15, 17, 64 * KIB):
            wrong = os.urandom(length)
            request_id = common.RequestId(client_id=wrong, seq=1)
            self.assert_refused(INVALID, "INVALID_FIELD", stub.OpenSession,
                                pb.OpenSessionRequest(name="n", request_id=request_id))
            self.assert_refused(INVALID, "INVALID_FIELD", stub.CloseSession,
                                pb.CloseSessionRequest(session_id=wrong))
            self.assert_refused(INVALID, "INVALID_FIELD", stub.Lock, pb.LockRequest(
                session_id=wrong, key=b"k", request_id=self.client._next_id()))
            for fields in ({"cluster_id": wrong}, {"request_id": request_id}):
                self.assert_refused(INVALID, "INVALID_FIELD", self.owner_.stub.Read,
                                    instance_pb.InstanceServiceReadRequest(
                                        header=self.header(b"k", **fields)))
            for fields in ({"cluster_id": wrong}, {"client_id": wrong}):
                answer, = self.pipeline(self.batch(**fields))
                self.assertEqual(answer.error.routing.reason, "INVALID_FIELD")
            answer, = stub.Execute(iter([pb.ExecuteRequest(
                statement_id=7, session_id=wrong, read=pb.ReadStatement(key=b"k"))]), timeout=10)
            self.assertEqual((answer.statement_id, answer.error.routing.reason),
                             (7, "INVALID_FIELD"))
        self.assert_serves()

    def test_request_id_without_seq(self):
        no_seq = common.RequestId(client_id=os.urandom(16), seq=0)
        self.client.put(b"k", b"v")
        self.assert_refused(INVALID, "INVALID_FIELD", self.client.stub.OpenSession,
                            pb.OpenSessionRequest(name="n", request_id=no_seq))
        self.assert_refused(INVALID, "INVALID_FIELD", self.owner_.stub.Put,
                            instance_pb.InstanceServicePutRequest(
                                header=self.header(b"k", request_id=no_seq), value=b"w"))
        self.assertEqual(self.client.read(b"k").key.value, b"v")
        self.assert_serves()

    def test_names_that_are_none(self):
        """NUL, what is not UTF-8, and what would spoil a terminal or a log."""
        self.client.put(b"k", b"v")
        request_id = common.RequestId(client_id=os.urandom(16), seq=1).SerializeToString()
        open_session = self.raw("coordinator", COORDINATOR + "OpenSession")
        list_instances = self.raw("coordinator", ADMIN + "ListInstances")
        read = self.raw("a", INSTANCE + "Read")
        header = self.header(b"k")
        header.owner = ""

        def all_names():
            for name in NO_NAMES:
                self.assert_code(INVALID, open_session,
                                 bytes_field(1, name) + bytes_field(2, request_id))
                wrong = header.SerializeToString() + bytes_field(4, name)
                self.assert_code(INVALID, read, bytes_field(1, wrong))
                if name != b"\x00":  # which is no name, and that may be
                    self.assert_code(INVALID, list_instances, bytes_field(1, name))

        self.assert_flat(all_names, 5)

    def test_text_ends_at_its_first_nul(self):
        self.client.put(b"k", b"v")
        header = self.header(b"k")
        header.owner = "a\x00b"
        self.assertEqual(self.owner_.call("Read", header).result.value, b"v")
        header.owner = "b\x00a"
        self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "NOT_OWNER",
                            self.owner_.stub.Read,
                            instance_pb.InstanceServiceReadRequest(header=header))
        self.assert_serves()

    def test_enumerators_that_nobody_knows(self):
        self.client.put(b"k", b"v")
        read = self.raw("a", INSTANCE + "Read")
        route = self.raw("coordinator", COORDINATOR + "Route")
        for number in (99, 2**31 - 1, U64_MAX):
            self.assert_code(INVALID, read,
                             bytes_field(1, self.header(b"k").SerializeToString()) +
                             number_field(2, number))
            self.assert_code(INVALID, route, bytes_field(1, b"k") + number_field(2, number))
            operation = bytes_field(2, b"k") + number_field(1, number)
            answer, = self.pipeline(self.batch().SerializeToString() + bytes_field(9, operation))
            failed, = answer.result.results
            self.assertEqual(failed.error.routing.reason, "INVALID_FIELD")
        self.assert_serves()

    def test_largest_numbers_straight_at_the_owner(self):
        """No number of a client makes the owner doubt its coordinator or forget its keys."""
        self.client.put(b"k", b"v")
        for field in ("epoch", "incarnation", "done_below", "first_epoch", "lock_token", "term"):
            for verb, fields in (("Read", {}), ("Put", {"value": b"v"}), ("Set", {"value": b"v"})):
                header = self.header(b"k", **{field: U64_MAX})
                with contextlib.suppress(grpc.RpcError):
                    self.owner_.call(verb, header, timeout=2, **fields)
            self.assert_serves()
        last = common.RequestId(client_id=os.urandom(16), seq=U64_MAX)
        for _ in range(2):  # the second is the retry
            self.owner_.call("Put", self.header(b"k", request_id=last), value=b"last")
        version = common.Version(epoch=U64_MAX, incarnation=U64_MAX, seq=U64_MAX)
        self.assert_refused(grpc.StatusCode.FAILED_PRECONDITION, "VERSION_MISMATCH",
                            self.owner_.stub.Put, instance_pb.InstanceServicePutRequest(
                                header=self.header(b"k"), value=b"w", if_version=version))
        self.assertEqual(self.client.read(b"k").key.value, b"last")
        self.assertTrue(self.owner_.status().serving)
        self.assertEqual(self.cluster.state("a"), "alive")

    def test_largest_numbers_at_the_coordinator(self):
        self.client.put(b"k", b"v")
        version = common.Version(epoch=U64_MAX, incarnation=U64_MAX, seq=U64_MAX)
        requests = [
            {"done_below": U64_MAX}, {"timeout_ms": U32_MAX}, {"first_version": U64_MAX},
            {"statement_id": U64_MAX},
            {"request_id": common.RequestId(client_id=os.urandom(16), seq=U64_MAX)},
            {"put": pb.PutStatement(key=b"k", value=b"w", lock_token=U64_MAX)},
            {"put": pb.PutStatement(key=b"k", value=b"w", if_version=version)},
            {"store": pb.StoreStatement(key=b"k", last_set=version)}]
        liar = self.session(self.cluster, "liar")  # who forgets its own requests, nobody else's
        for fields in requests:
            request = pb.ExecuteRequest(**{"statement_id": 1, "session_id": liar.id,
                                           "timeout_ms": 5000, "request_id": liar._next_id(),
                                           "read": pb.ReadStatement(key=b"k"), **fields})
            answer, = liar.stub.Execute(iter([request]), timeout=20)
            self.assertEqual(answer.statement_id, request.statement_id, fields)
        self.assertEqual(self.cluster.status(b"k").value, b"v")
        stub = self.client.stub
        for call, request in (
                (stub.Unlock, pb.UnlockRequest(session_id=self.client.id, key=b"k",
                                               lock_token=U64_MAX)),
                (stub.Route, pb.RouteRequest(key=b"k", operation=pb.ROUTE_OPERATION_READ,
                                             lock_token=U64_MAX))):
            with contextlib.suppress(grpc.RpcError):
                call(request, timeout=2)
        self.assert_serves()

    def test_pages_of_any_size(self):
        admin = api.admin_pb2_grpc.AdminServiceStub(self.cluster.channel)
        self.client.put(b"k", b"v")
        list_instances, list_keys = (api.admin_pb2.AdminServiceListInstancesRequest,
                                     api.admin_pb2.AdminServiceListKeysRequest)
        listed = admin.ListInstances(list_instances(page_size=1000), timeout=10)
        self.assertEqual([i.name for i in listed.instances], ["a"])
        listed = admin.ListKeys(list_keys(page_size=1000, prefix=b"k"), timeout=10)
        self.assertEqual([k.key for k in listed.keys], [b"k"])
        for size in (1001, U32_MAX):
            self.assert_refused(INVALID, "INVALID_FIELD", admin.ListInstances,
                                list_instances(page_size=size))
            self.assert_refused(INVALID, "INVALID_FIELD", admin.ListKeys, list_keys(page_size=size))
        for field in ("prefix", "after"):
            self.assert_refused(INVALID, "KEY_TOO_LONG", admin.ListKeys,
                                list_keys(**{field: b"k" * 256}))
        self.assert_serves()


@unittest.skipIf(MISSING, MISSING)
class BadMessages(Raw):
    """Messages that are malformed, or small on the wire and large in memory."""

    def test_malformed_messages(self):
        good = instance_pb.InstanceServiceReadRequest(
            header=self.header(b"k")).SerializeToString()
        malformed = [good[:-1], b"\x0b\x0c", b"\x0b" * 1000, b"\x0c", b"\x0f\x00", b"\x00",
                     varint(2**29 << 3) + b"\x00", b"\x0a" + varint(U64_MAX),
                     b"\x0a" + b"\xff" * 11, b"\x08" + b"\xff" * 11]
        read = self.raw("a", INSTANCE + "Read")
        route = self.raw("coordinator", COORDINATOR + "Route")

        def all_of_them():
            for payload in malformed:
                self.assert_code(INVALID, read, payload)
                self.assert_code(INVALID, route, payload)

        self.assert_flat(all_of_them, 20)

    def test_message_of_exactly_4_mib_is_read(self):
        """Fields that the server does not know may be in it; one byte more is refused."""
        status = self.raw("a", INSTANCE + "Status")
        instances = self.raw("coordinator", ADMIN + "ListInstances")
        frame = len(bytes_field(1000, bytes(4 * MIB - 16))) - (4 * MIB - 16)

        def at_and_past_the_limit():
            for call in (status, instances):
                payload = bytes_field(1000, bytes(4 * MIB - frame))
                self.assertEqual(len(payload), 4 * MIB)
                self.assertTrue(call(payload, timeout=20))
                self.assert_code(EXHAUSTED, call, payload + b"\x00")

        self.assert_flat(at_and_past_the_limit, 20)

    def test_repeated_fields_that_grow_in_memory(self):
        """2 million empty operations in 4 MiB would need some 400 MiB."""
        shared = self.batch().SerializeToString()
        bomb = shared + bytes_field(9, b"") * ((4 * MIB - len(shared)) // 2)

        def explode():
            with self.assertRaises(grpc.RpcError) as caught:
                self.pipeline(bomb)
            self.assertEqual(caught.exception.code(), EXHAUSTED)

        self.assert_flat(explode, 10)

    def test_unknown_fields_without_number(self):
        """As many as a message can hold; nobody keeps them."""
        call = self.raw("a", INSTANCE + "Status")

        def explode():
            with contextlib.suppress(grpc.RpcError):
                call(number_field(15, 1) * (2 * MIB), timeout=20)

        self.assert_flat(explode, 10)

    def test_batch_with_bad_operations_answers_the_others_in_order(self):
        self.client.put(b"good", b"old")
        epoch = self.cluster.status(b"good").epoch
        kinds = instance_pb.PipelineOperation
        put, read = (instance_pb.PIPELINE_OPERATION_KIND_PUT,
                     instance_pb.PIPELINE_OPERATION_KIND_READ)
        operations = [
            kinds(kind=put, key=b"good", epoch=epoch, value=b"1"),
            kinds(kind=put, key=b"", epoch=epoch, value=b"x"),
            kinds(kind=put, key=b"k" * 256, epoch=epoch, value=b"x"),
            kinds(kind=read, key=b"good", epoch=epoch),
            kinds(key=b"good", epoch=epoch),
            kinds(kind=put, key=b"good", epoch=epoch, value=b"2"),
            kinds(kind=read, key=b"elsewhere", epoch=epoch),
            kinds(kind=read, key=b"good", epoch=epoch)]
        answer, = self.pipeline(self.batch(*operations))
        results = answer.result.results
        self.assertEqual([r.error.routing.reason for r in results],
                         ["", "KEY_EMPTY", "KEY_TOO_LONG", "", "INVALID_FIELD", "", "NOT_OWNER",
                          ""])
        self.assertEqual((results[3].value, results[7].value), (b"1", b"2"))
        self.assert_serves()


@unittest.skipIf(MISSING, MISSING)
class BadCalls(Raw):
    """Methods, metadata and deadlines."""

    METHODS = {"coordinator": (ADMIN + "ListInstances"), "a": (INSTANCE + "Status")}

    def test_metadata_around_8_kib(self):
        """Refused for this call alone; far past it the connection ends, and nobody else's."""
        def one_call_each():
            for name, path in self.METHODS.items():
                call = self.raw(name, path)
                self.assertTrue(call(b"", timeout=10, metadata=[("x", "v" * 7 * KIB)]))
                for metadata in ([("x", "v" * 8 * KIB)], [(f"x{i}", "v") for i in range(300)],
                                 [("x-bin", os.urandom(40 * KIB))]):
                    self.assert_code(EXHAUSTED, call, b"", metadata=metadata)
                self.assertTrue(call(b"", timeout=10))
                with self.assertRaises(grpc.RpcError):
                    call(b"", timeout=10, metadata=[("x", "v" * 200 * KIB)])

        self.assert_flat(one_call_each, 10)

    def test_calls_without_deadline(self):
        """As clients make them that were written in a hurry."""
        self.client.run(0, put=pb.PutStatement(key=b"k", value=b"v"))
        self.assertEqual(self.client.run(0, read=pb.ReadStatement(key=b"k")).key.value, b"v")
        read = instance_pb.InstanceServiceReadRequest(header=self.header(b"k"))
        self.assertEqual(self.owner_.stub.Read(read).result.value, b"v")
        answer, = self.pipeline(self.batch(instance_pb.PipelineOperation(
            kind=instance_pb.PIPELINE_OPERATION_KIND_READ, key=b"k",
            epoch=self.cluster.status(b"k").epoch)))
        self.assertEqual(answer.result.results[0].value, b"v")
        self.assert_serves()

    def test_unknown_methods_leave_nothing_behind(self):
        def ask():
            for name in self.METHODS:
                channel = self.channel(name)
                for path in (INSTANCE + "Nothing", "/no.Such/Set", "/" + "x" * 4096):
                    self.assert_code(grpc.StatusCode.UNIMPLEMENTED,
                                     channel.unary_unary(path, identity, identity), b"x")
                channel.close()

        self.assert_flat(ask, 20)


if __name__ == "__main__":
    tap.main()
