"""Operations straight at an instance with routes that are wrong, old or too new."""
import unittest

import tap
from cluster import wait_until

try:
    import grpc

    import api
    from fleet import APPLIED_NO, Fleet, common, instance_pb
    MISSING = None
except unittest.SkipTest as skip:
    MISSING = str(skip)
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"

VERBS = {"Set": {"value": b"wrong"}, "Store": {}, "Put": {"value": b"wrong"}, "Delete": {},
         "Read": {}}
WRITES = ("Set", "Store", "Put", "Delete")
DETAILS_MAX = 2048


@unittest.skipIf(MISSING, MISSING)
class Routes(unittest.TestCase):
    """A key at `a`, held under a token; `b` knows nothing of it."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = cls.enterClassContext(Fleet(instances="ab"))
        cls.fleet.kill("a")
        cls.fleet.start_instance("a")  # so that there is an earlier life of it
        cls.owner, cls.other = (cls.enterClassContext(cls.fleet.owner(name)) for name in "ab")
        cls.cluster_id = cls.owner.status().cluster_id

    def setUp(self):
        self.session = self.fleet.session("holder")
        self.addCleanup(self.session.close)
        self.key = self.key_at_a(self.id().rsplit(".", 1)[1])
        self.token = self.session.get(self.key).lock_token
        self.epoch = self.fleet.status(self.key).epoch
        self.incarnation = self.fleet.incarnations()["a"]
        self.seq = 0

    def key_at_a(self, name):
        """New keys go to the two instances in turn."""
        for key in (name.encode(), name.encode() + b":2"):
            token = self.session.get(key).lock_token
            if self.session.set(key, b"v", token).instance == "a":
                return key
        raise AssertionError("neither of two new keys went to a")

    def header(self, **wrong):
        self.seq += 1
        return instance_pb.OperationHeader(**{
            "cluster_id": self.cluster_id, "key": self.key, "epoch": self.epoch, "owner": "a",
            "incarnation": self.incarnation, "lock_token": self.token,
            "request_id": common.RequestId(client_id=self.session.client_id,
                                           seq=1000 + self.seq), **wrong})

    def refused(self, verb, header, at=None):
        """The failure of one operation: gRPC code and RoutingError, whose form is checked."""
        with self.assertRaises(grpc.RpcError) as caught:
            (at or self.owner).call(verb, header, **VERBS[verb])
        failure = caught.exception
        routing, status = api.routing_error(failure)
        self.assertEqual((status.code, status.message),
                         (failure.code().value[0], failure.details()))
        info, retry = api.error_details_pb2.ErrorInfo(), api.error_details_pb2.RetryInfo()
        self.assertEqual([d.Unpack(info) for d in status.details].count(True), 1)
        self.assertEqual((info.reason, info.domain), (routing.reason, "redistinto"))
        self.assertEqual(any(d.Unpack(retry) for d in status.details), routing.retry_after_ms > 0)
        self.assertEqual(routing.retry_after_ms > 0,
                         failure.code() == grpc.StatusCode.UNAVAILABLE)
        self.assertLessEqual(status.ByteSize(), DETAILS_MAX)
        return failure.code().name, routing

    def assert_refused(self, code, reason, verbs=tuple(VERBS), at=None, hint=False, refresh=False,
                       **wrong):
        for verb in verbs:
            with self.subTest(verb=verb):
                header = self.header(**wrong)
                got, routing = self.refused(verb, header, at)
                self.assertEqual((got, routing.reason, routing.applied),
                                 (code, reason, APPLIED_NO))
                self.assertEqual((routing.key, routing.request_epoch), (self.key, header.epoch))
                self.assertEqual(routing.responder.name, "b" if at else "a")
                self.assertGreater(routing.responder.incarnation, 0)
                self.assertGreater(routing.responder.term, 0)
                self.assertEqual(routing.refresh_required, refresh)
                self.assertEqual(routing.HasField("hint"), hint)
                if hint:
                    self.assertEqual(routing.hint, common.Hint(
                        name="a", address=self.fleet.addresses["a"],
                        incarnation=self.incarnation, epoch=self.epoch))
                    self.assertEqual(routing.current_epoch, self.epoch)
        self.assert_untouched()

    def assert_untouched(self):
        read = self.owner.call("Read", self.header()).result
        self.assertEqual((read.value, read.version.epoch), (b"v", self.epoch))
        self.assertEqual(self.fleet.status(self.key).value, b"v")

    def test_right_route(self):
        self.assert_untouched()
        written = self.owner.call("Set", self.header(), value=b"w")
        self.assertEqual((written.responder.name, written.responder.incarnation),
                         ("a", self.incarnation))
        self.assertEqual(self.fleet.status(self.key).value, b"w")
        self.assertTrue(self.owner.call("Store", self.header()).result.stored)

    def test_wrong_cluster(self):
        for cluster_id in (b"x" * 16, b""):
            self.assert_refused("FAILED_PRECONDITION", "WRONG_CLUSTER", cluster_id=cluster_id)

    def test_wrong_owner_name(self):
        for name in ("b", "nobody", "A"):
            self.assert_refused("FAILED_PRECONDITION", "NOT_OWNER", refresh=True, owner=name)

    def test_instance_without_the_key(self):
        self.assert_refused("FAILED_PRECONDITION", "NOT_OWNER", refresh=True, at=self.other,
                            owner="b", incarnation=self.fleet.incarnations()["b"])

    def test_lower_incarnation(self):
        for incarnation in (self.incarnation - 1, 0):
            self.assert_refused("FAILED_PRECONDITION", "STALE_INCARNATION", hint=True,
                                refresh=True, incarnation=incarnation)

    def test_higher_incarnation(self):
        for incarnation in (self.incarnation + 1, 2**64 - 1):
            self.assert_refused("FAILED_PRECONDITION", "SUPERSEDED", refresh=True,
                                incarnation=incarnation)
        self.assertEqual(self.fleet.incarnations()["a"], self.incarnation)

    def test_lower_epoch(self):
        for epoch in (self.epoch - 1, 0):
            self.assert_refused("FAILED_PRECONDITION", "STALE_EPOCH", hint=True, refresh=True,
                                epoch=epoch)

    def test_higher_epoch(self):
        for epoch in (self.epoch + 1, 2**64 - 1):
            self.assert_refused("UNAVAILABLE", "EPOCH_AHEAD", epoch=epoch)

    def test_missing_token_on_a_locked_key(self):
        self.assert_refused("FAILED_PRECONDITION", "KEY_NOT_LOCKED", WRITES, lock_token=0)

    def test_higher_token(self):
        for token in (self.token + 1000, 2**64 - 1):
            self.assert_refused("UNAVAILABLE", "TOKEN_AHEAD", WRITES, lock_token=token)

    def test_lower_token(self):
        old = self.token
        self.session.close()
        self.session = self.fleet.session("next")
        self.addCleanup(self.session.close)
        self.token = self.session.lock(self.key).lock_token
        self.assertGreater(self.token, old)
        self.assert_refused("ABORTED", "LOCK_FENCED", WRITES, lock_token=old)

    def test_token_of_a_lock_that_a_store_ended(self):
        self.session.store(self.key, self.token)
        self.assert_refused("FAILED_PRECONDITION", "KEY_NOT_LOCKED", WRITES)

    def test_epoch_of_a_key_that_was_deleted_and_made_again(self):
        old = self.header()
        self.session.store(self.key, self.token)
        self.session.delete(self.key)
        wait_until(lambda: self.fleet.status(self.key).owner == "", "the key is forgotten")
        for _ in range(2):  # one of two placements is at `a`
            if self.session.put(self.key, b"v").instance == "a":
                break
            self.session.delete(self.key)
            wait_until(lambda: self.fleet.status(self.key).owner == "", "the key is forgotten")
        self.token, self.epoch = 0, self.fleet.status(self.key).epoch
        self.assertGreater(self.epoch, old.epoch)
        self.assert_refused("FAILED_PRECONDITION", "STALE_EPOCH", hint=True, refresh=True,
                            epoch=old.epoch)

    def test_same_request_twice_has_one_effect(self):
        header = self.header()
        first = self.owner.call("Put", header, value=b"1")
        again = self.owner.call("Put", header, value=b"1")
        self.assertTrue(again.result.replayed)
        self.assertEqual(again.result.version, first.result.version)

    def test_malformed_requests(self):
        for wrong, reason in (({"key": b""}, "KEY_EMPTY"), ({"key": b"k" * 256}, "KEY_TOO_LONG"),
                              ({"cluster_id": b"short"}, "INVALID_FIELD"),
                              ({"owner": "n" * 64}, "INVALID_FIELD"),
                              ({"request_id": common.RequestId(client_id=b"x", seq=1)},
                               "INVALID_FIELD")):
            code, routing = self.refused("Set", self.header(**wrong))
            self.assertEqual((code, routing.reason, routing.applied),
                             ("INVALID_ARGUMENT", reason, APPLIED_NO), wrong)
            self.assertLessEqual(len(routing.key), 256)
        self.assert_untouched()

    def test_no_header_at_all(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.owner.stub.Set(instance_pb.InstanceServiceSetRequest(value=b"v"), timeout=10)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(api.routing_error(caught.exception)[0].applied, APPLIED_NO)

    def test_commands_of_an_earlier_term(self):
        stub = api.ownership_pb2_grpc.OwnershipServiceStub(self.owner.channel)
        owned = api.ownership_pb2
        for call, request in (
                (stub.Fence, owned.FenceRequest(term=0, key=self.key, epoch=self.epoch,
                                                incarnation=self.incarnation, token=2**40)),
                (stub.Drop, owned.DropRequest(term=0, key=self.key, epoch=self.epoch))):
            with self.assertRaises(grpc.RpcError) as caught:
                call(request, timeout=10)
            routing, _ = api.routing_error(caught.exception)
            self.assertEqual((routing.reason, routing.applied), ("STALE_TERM", APPLIED_NO))
        self.assert_untouched()


if __name__ == "__main__":
    tap.main()
