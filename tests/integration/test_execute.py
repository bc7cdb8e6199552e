"""Scripts of statements through Execute, from a client made of nothing but proto/."""
import concurrent.futures
import unittest

import tap
from cluster import Cluster, wait_until

try:
    import grpc

    import api
    from api import DONE, READY, WAITING
    MISSING = None
except unittest.SkipTest as skip:
    MISSING = str(skip)
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"


@unittest.skipIf(MISSING, MISSING)
class Execute(unittest.TestCase):
    """The default profile, three instances."""

    OPTIONS = []

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(*cls.OPTIONS, instances=3))

    def session(self, name="test"):
        session = api.Session(self.cluster.coordinator, name)
        self.addCleanup(session.channel.close)
        return session

    def assert_fails(self, reason, function, *arguments, **keywords):
        with self.assertRaises(api.StatementFailed) as caught:
            function(*arguments, **keywords)
        self.assertEqual(caught.exception.reason, reason)
        return caught.exception.error

    def status(self, key):
        return self.cluster.cli("status", key, "-o", "json").json()


class Statements(Execute):
    """What one session or two may do."""

    def test_get_set_store(self):
        session = self.session()
        got = session.get(b"s:a")
        self.assertEqual((got.outcome, got.instance, got.epoch), (DONE, "", 0))
        self.assertGreater(got.lock_token, 0)
        self.assertIsNone(got.key.WhichOneof("optional_value"))
        was_set = session.set(b"s:a", b"one two", got.lock_token)
        self.assertIn(was_set.instance, self.cluster.by_name)
        self.assertGreater(was_set.epoch, 0)
        self.assertFalse(was_set.key.stored)
        stored = session.store(b"s:a", got.lock_token, was_set.key.version)
        self.assertTrue(stored.key.stored)
        self.assertFalse(stored.lock_lost)
        status = self.status("s:a")
        self.assertEqual((status["value"], status["owner"], status["holder"]),
                         ("one two", was_set.instance, None))

    def test_get_of_the_holder_is_no_second_lock(self):
        session = self.session()
        first, second = session.get(b"s:b"), session.get(b"s:b")
        self.assertEqual((second.outcome, second.lock_token), (DONE, first.lock_token))

    def test_waiting_await_get(self):
        holder, waiter = self.session("holder"), self.session("waiter")
        token = holder.get(b"s:c").lock_token
        blocked = waiter.get(b"s:c")
        self.assertEqual((blocked.outcome, blocked.holder), (WAITING, "holder"))
        self.assertEqual(self.status("s:c")["waiters"], ["waiter"])
        holder.set(b"s:c", b"v1", token)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            turn = pool.submit(waiter.wait_turn, b"s:c")
            holder.store(b"s:c", token)
            self.assertEqual(turn.result(timeout=30).outcome, READY)
        got = waiter.get(b"s:c")
        self.assertEqual((got.outcome, got.key.value), (DONE, b"v1"))
        self.assertGreater(got.lock_token, token)
        self.assert_fails("LOCK_FENCED", holder.set, b"s:c", b"late", token)
        self.assertEqual(waiter.read(b"s:c").key.value, b"v1")
        waiter.store(b"s:c", got.lock_token)

    def test_end_of_a_session_frees_its_locks(self):
        holder, waiter = self.session("holder"), self.session("waiter")
        holder.get(b"s:d")
        self.assertEqual(waiter.get(b"s:d").outcome, WAITING)
        holder.close()
        self.assertEqual(waiter.wait_turn(b"s:d").outcome, READY)
        self.assertEqual(waiter.get(b"s:d").outcome, DONE)

    def test_await_times_out_and_keeps_its_place(self):
        holder, waiter, last = self.session("holder"), self.session("waiter"), self.session("last")
        token = holder.get(b"s:e").lock_token
        waiter.get(b"s:e")
        last.get(b"s:e")
        error = self.assert_fails("DEADLINE_EXCEEDED", waiter.run, timeout_ms=100,
                                  await_turn=api.pb.AwaitStatement(key=b"s:e"))
        self.assertEqual(error.code, grpc.StatusCode.DEADLINE_EXCEEDED.value[0])
        self.assertEqual(self.status("s:e")["waiters"], ["waiter", "last"])
        holder.store(b"s:e", token)
        self.assertEqual(waiter.wait_turn(b"s:e").outcome, READY)

    def test_store_of_a_key_never_set(self):
        session = self.session()
        token = session.get(b"s:f").lock_token
        self.assertEqual(session.store(b"s:f", token).outcome, DONE)
        status = self.status("s:f")
        self.assertEqual((status["owner"], status["holder"], status["value"]), (None, None, None))

    def test_put_read_delete(self):
        session = self.session()
        put = session.put(b"s:g", b"x" * 1000)
        self.assertTrue(put.key.stored)
        self.assertEqual(session.read(b"s:g").key.value, b"x" * 1000)
        self.assert_fails("VERSION_MISMATCH", session.put, b"s:g", b"y",
                          if_version=api.common_pb2.Version(epoch=put.epoch, seq=99))
        session.put(b"s:g", b"z", if_version=put.key.version)
        session.delete(b"s:g")
        self.assertIsNone(self.status("s:g")["value"])
        self.assertIsNone(session.get(b"s:g").key.WhichOneof("optional_value"))

    def test_value_of_every_size_class(self):
        session = self.session()
        for size in (0, 1, 127, 128, 129, 1024 * 1024):
            session.put(b"s:h", bytes(size))
            self.assertEqual(len(session.read(b"s:h").key.value), size)
        self.assert_fails("VALUE_TOO_LARGE", session.put, b"s:h", bytes(1024 * 1024 + 1))

    def test_keys_of_every_length(self):
        session = self.session()
        session.put(b"\x00", b"1")
        session.put(b"\xff" * 255, b"255")
        self.assertEqual(session.read(b"\xff" * 255).key.value, b"255")
        self.assert_fails("KEY_TOO_LONG", session.get, b"k" * 256)
        self.assert_fails("KEY_EMPTY", session.get, b"")

    def test_write_under_the_lock_of_another(self):
        holder, other = self.session("holder"), self.session("other")
        token = holder.get(b"s:i").lock_token
        self.assert_fails("KEY_NOT_LOCKED", other.set, b"s:i", b"v")
        self.assert_fails("KEY_NOT_LOCKED", other.put, b"s:i", b"v")
        self.assert_fails("KEY_NOT_LOCKED", other.store, b"s:i")
        holder.set(b"s:i", b"mine", token)
        self.assert_fails("KEY_NOT_LOCKED", other.put, b"s:i", b"v")
        self.assertEqual(holder.read(b"s:i").key.value, b"mine")

    def test_unknown_session(self):
        session = self.session()
        session.id = bytes(15) + b"\x01"
        error = self.assert_fails("SESSION_UNKNOWN", session.get, b"s:j")
        self.assertEqual(error.routing.applied, api.common_pb2.APPLIED_NO)

    def test_error_does_not_end_the_stream(self):
        session = self.session()
        self.assert_fails("KEY_EMPTY", session.get, b"")
        self.assertEqual(session.get(b"s:k").outcome, DONE)

    def test_errors_of_unary_calls_carry_details(self):
        stub = api.admin_pb2_grpc.AdminServiceStub(self.session().channel)
        with self.assertRaises(grpc.RpcError) as caught:
            stub.KeyStatus(api.admin_pb2.AdminServiceKeyStatusRequest(key=b"x" * 256), timeout=10)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        routing, status = api.routing_error(caught.exception)
        self.assertEqual(routing.reason, "KEY_TOO_LONG")
        self.assertEqual(routing.applied, api.common_pb2.APPLIED_NO)
        info = api.error_details_pb2.ErrorInfo()
        self.assertTrue(any(d.Unpack(info) for d in status.details))
        self.assertEqual((info.reason, info.domain), ("KEY_TOO_LONG", "redistinto"))


class Placement(Execute):
    """Equitable Load, as the first keys of a fresh cluster see it."""

    def test_new_keys_go_round(self):
        session = self.session()
        placed = []
        for i in range(6):
            key = f"p:{i}"
            expected = self.status(key)["would_place"]
            placed.append(session.put(key.encode(), b"v").instance)
            self.assertEqual(placed[-1], expected)
            session.put(key.encode(), b"again")
            session.get(f"p:only-got-{i}".encode())
        self.assertEqual(placed, ["instance-1", "instance-2", "instance-3"] * 2)


class Classic(Execute):
    """The course's rules."""

    OPTIONS = ["--profile", "classic"]

    def test_lock_is_required(self):
        session = self.session()
        self.assert_fails("KEY_NOT_IDENTIFIED", session.set, b"c:a", b"v")
        token = session.get(b"c:a").lock_token
        session.set(b"c:a", b"v", token)
        session.store(b"c:a", token)
        self.assert_fails("KEY_NOT_LOCKED", session.set, b"c:a", b"w")

    def test_key_of_40_and_41_bytes(self):
        session = self.session()
        self.assertEqual(session.get(b"k" * 40).outcome, DONE)
        self.assert_fails("KEY_TOO_LONG", session.get, b"k" * 41)


@unittest.skipIf(MISSING, MISSING)
class Restart(unittest.TestCase):
    """What was acknowledged as durable survives the processes."""

    def test_stored_values_survive_a_kill_of_everything(self):
        with Cluster(instances=2) as cluster:
            with api.Session(cluster.coordinator) as session:
                for i in range(20):
                    session.put(b"r:%d" % i, b"v%d" % i)
                epochs = [session.read(b"r:%d" % i).epoch for i in range(20)]
            for name in ("coordinator", "instance-1", "instance-2"):
                cluster.kill(name)
            for name in ("coordinator", "instance-1", "instance-2"):
                cluster.restart(name)
            wait_until(lambda: cluster.cli("health").code == 0, "all serve again")
            with api.Session(cluster.coordinator) as session:
                answers = [session.read(b"r:%d" % i) for i in range(20)]
            self.assertEqual([a.key.value for a in answers], [b"v%d" % i for i in range(20)])
            self.assertEqual([a.epoch for a in answers], epochs)


if __name__ == "__main__":
    tap.main()
