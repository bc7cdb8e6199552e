"""Processes that are killed or stand still, and start again on their data, under load, and
processes whose data are deleted."""
import shutil
import signal
import socket
import time
import unittest

import tap
from cluster import wait_until

try:
    import grpc

    import api
    from api import DONE, READY, WAITING, StatementFailed
    from fleet import APPLIED_MAYBE, APPLIED_NO, common, pass_time
    from fleet_case import FleetCase, place
    from workload import Writer
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


class Failures(FleetCase):
    """What the tests below share."""

    def header(self, fleet, session, key, token=0):
        """The route of a key as the coordinator tells it."""
        status = fleet.status(key)
        session.seq += 1
        return api.instance_pb2.OperationHeader(
            cluster_id=self.owner(fleet, status.owner).status().cluster_id, key=key,
            epoch=status.epoch, owner=status.owner,
            incarnation=fleet.incarnations()[status.owner], lock_token=token,
            request_id=common.RequestId(client_id=session.client_id, seq=session.seq))


@unittest.skipIf(MISSING, MISSING)
class InstanceKilled(Failures):
    """kill -9 of an instance, then the same data again, far within its lease of 30 s."""

    def setUp(self):
        self.fleet_ = self.fleet("--lease", "30s", "--session-lease", "30s")
        self.holder = self.session(self.fleet_, "holder")
        place(self.holder, [b"k1", b"k2", b"k3"])

    def restart(self, name):
        self.fleet_.kill(name)
        self.fleet_.start_instance(name)

    def time_restart(self, name, key):
        """Seconds from the start of the new process to the first READ of a key of it."""
        self.fleet_.kill(name)
        started = time.monotonic()
        service = self.fleet_.spawn_instance(name, listen=self.fleet_.addresses[name])
        self.fleet_.services[name] = service

        def value():
            try:
                return self.holder.read(key).key.value
            except StatementFailed:
                return None
        wait_until(lambda: value() == b"first " + key, f"{name} serves {key} again")
        took = time.monotonic() - started
        service.wait_ready()
        return took

    def test_c27_takes_over_at_once_with_its_stored_values(self):
        before = self.fleet_.incarnations()
        epochs = [self.fleet_.status(key).epoch for key in (b"k1", b"k2", b"k3")]
        took = [self.time_restart(*pair) for pair in zip("abc", (b"k1", b"k2", b"k3"))]
        self.assertLess(min(took), 1.0, took)
        self.assertLess(max(took), 5.0, took)  # the lease is 30 s, whatever else the machine does
        after = self.fleet_.incarnations()
        for name in "abc":
            self.assertGreater(after[name], before[name])
        for key, epoch in zip((b"k1", b"k2", b"k3"), epochs):
            status = self.fleet_.status(key)
            self.assertEqual((status.value, status.stored, status.epoch),
                             (b"first " + key, True, epoch))

    def test_c27_store_of_a_set_that_died_is_set_lost(self):
        token = self.holder.get(b"k1").lock_token
        was_set = self.holder.set(b"k1", b"volatile", token)
        self.restart("a")
        error = self.assert_fails("SET_LOST", self.holder.store, b"k1", token,
                                  was_set.key.version)
        self.assertEqual(error.code, grpc.StatusCode.FAILED_PRECONDITION.value[0])
        self.assertEqual(error.routing.applied, APPLIED_NO)
        again = self.holder.set(b"k1", b"once more", token)
        self.assertEqual(again.instance, "a")
        self.assertTrue(self.holder.store(b"k1", token, again.key.version).key.stored)
        self.assertEqual(self.fleet_.status(b"k1").value, b"once more")

    def test_c27_first_access_says_sets_lost_once(self):
        token = self.holder.get(b"k1").lock_token
        self.holder.set(b"k1", b"volatile", token)
        self.restart("a")
        got = self.holder.get(b"k1")
        self.assertEqual((got.key.sets_lost, got.key.value), (True, b"first k1"))
        self.assertFalse(self.holder.get(b"k1").key.sets_lost)

    def test_c27_key_that_was_only_set_has_no_value_and_says_so(self):
        token = self.holder.get(b"only").lock_token
        self.assertEqual(self.holder.set(b"only", b"volatile", token).instance, "a")
        epoch = self.fleet_.status(b"only").epoch
        self.restart("a")
        got = self.holder.get(b"only")
        self.assertTrue(got.key.sets_lost)
        self.assertIsNone(got.key.WhichOneof("optional_value"))
        self.assertEqual((got.instance, got.epoch, got.lock_token), ("a", epoch, token))

    def test_c28_keys_of_other_instances_are_untouched(self):
        tokens = {key: self.holder.get(key).lock_token for key in (b"k2", b"k3")}
        sets = {key: self.holder.set(key, b"volatile", token) for key, token in tokens.items()}
        self.fleet_.kill("a")
        for key, token in tokens.items():
            self.assertEqual(self.holder.read(key).key.value, b"volatile")
            self.holder.set(key, b"while a is down", token)
        self.fleet_.start_instance("a")
        for key, token in tokens.items():
            got = self.holder.get(key)
            self.assertEqual((got.key.value, got.key.sets_lost, got.epoch, got.instance),
                             (b"while a is down", False, sets[key].epoch, sets[key].instance))
            self.assertTrue(self.holder.store(key, token, sets[key].key.version).key.stored)

    def test_lock_survives_and_waiter_is_served_after_the_restart(self):
        token = self.holder.get(b"k1").lock_token
        waiter = self.session(self.fleet_, "waiter")
        self.assertEqual(waiter.get(b"k1").outcome, WAITING)
        self.restart("a")
        self.holder.set(b"k1", b"after", token)
        self.holder.store(b"k1", token)
        got = waiter.lock(b"k1")
        self.assertEqual((got.key.value, got.key.sets_lost), (b"after", False))
        self.assertGreater(got.lock_token, token)

    def test_comes_back_at_another_address(self):
        old = self.fleet_.addresses["a"]
        epoch = self.fleet_.status(b"k1").epoch
        self.fleet_.kill("a")
        with socket.create_server(("127.0.0.1", int(old.rsplit(":", 1)[1]))):
            self.fleet_.start_instance("a", listen="127.0.0.1:0")
            self.assertNotEqual(self.fleet_.addresses["a"], old)
            read = self.holder.read(b"k1")
            self.assertEqual((read.key.value, read.epoch), (b"first k1", epoch))
            self.assertEqual(self.fleet_.members()["a"].address, self.fleet_.addresses["a"])

    def test_leaves_and_comes_back_at_another_address_at_once(self):
        self.assertEqual(self.fleet_.stop("a"), 0)
        self.assertEqual(self.fleet_.state("a"), "left")
        self.fleet_.start_instance("a", listen="127.0.0.1:0")
        self.assertEqual(self.holder.read(b"k1").key.value, b"first k1")
        self.assertEqual(list(self.fleet_.members()), ["a", "b", "c"])


@unittest.skipIf(MISSING, MISSING)
class CoordinatorKilled(Failures):
    """The coordinator dies or stands still; what it had promised stays."""

    LEASE_S, GRACE_S = 2.0, 2.0 / 6

    def setUp(self):
        self.fleet_ = self.fleet("--lease", "2s", "--session-lease", "2s", "--wake-hold", "500ms")

    def writers(self, n):
        writers = [Writer(self.fleet_.coordinator, b"load:%d" % i) for i in range(n)]
        for writer in writers:
            writer.start()
            self.addCleanup(writer.ended.set)
        return writers

    def assert_kept(self, writers):
        """Nothing that was acknowledged is gone, and nothing was written that nobody asked for."""
        for writer in writers:
            self.assertEqual(writer.refused, [])
            value = int(self.fleet_.status(writer.key).value)
            self.assertGreaterEqual(value, writer.acked)
            self.assertLessEqual(value, writer.asked)
            self.assertEqual(writer.versions, sorted(set(writer.versions)))
            self.assertEqual(len(writer.epochs), 1)
            self.assertEqual(len(writer.owners), 1)

    def test_killed_under_load_reassigns_nothing_before_the_barrier(self):
        writers = self.writers(6)
        wait_until(lambda: all(w.acked >= 5 for w in writers), "every writer was acknowledged")
        routes = {w.key: (self.fleet_.status(w.key).owner, self.fleet_.status(w.key).epoch)
                  for w in writers}
        self.assertEqual({owner for owner, _ in routes.values()}, {"a", "b", "c"})
        self.fleet_.pause("c")
        self.fleet_.kill("coordinator")
        started = time.monotonic()
        self.fleet_.start_coordinator()
        at_start = {w.key: w.acked for w in writers}
        wait_until(lambda: all(w.acked > at_start[w.key] + 5 for w in writers
                               if routes[w.key][0] != "c"), "the others are served again")
        self.fleet_.wait_state("c", "dead")
        self.assertGreaterEqual(time.monotonic() - started, self.LEASE_S + self.GRACE_S)
        self.fleet_.resume("c")
        self.fleet_.wait_state("c", "alive")
        wait_until(lambda: all(w.acked > at_start[w.key] + 5 for w in writers),
                   "all are served again")
        for writer in writers:
            writer.stop()
        self.assert_kept(writers)
        for key, route in routes.items():
            status = self.fleet_.status(key)
            self.assertEqual((status.owner, status.epoch), route)

    def test_killed_three_times_under_load(self):
        writers = self.writers(4)
        incarnations = self.fleet_.incarnations()
        for _ in range(3):
            acked = {w.key: w.acked for w in writers}
            wait_until(lambda: all(w.acked > acked[w.key] + 3 for w in writers), "writes go on")
            self.fleet_.kill("coordinator")
            self.fleet_.start_coordinator()
        acked = {w.key: w.acked for w in writers}
        wait_until(lambda: all(w.acked > acked[w.key] + 3 for w in writers), "writes go on")
        for writer in writers:
            writer.stop()
        self.assert_kept(writers)
        self.assertEqual(self.fleet_.incarnations(), incarnations)

    def test_sessions_locks_and_waiters_survive_its_restart(self):
        holder, waiter = (api.Session(self.fleet_.coordinator, n) for n in ("holder", "waiter"))
        token = holder.get(b"k").lock_token
        was_set = holder.set(b"k", b"v", token)
        self.fleet_.kill("coordinator")
        self.fleet_.start_coordinator()
        status = self.fleet_.status(b"k")
        self.assertEqual((status.holder, status.value, status.epoch),
                         ("holder", b"v", was_set.epoch))
        for session in (holder, waiter):
            session.channel.close()
            reopen(session)
            self.addCleanup(session.channel.close)
        self.assertEqual(holder.get(b"k").lock_token, token)
        self.assertEqual(waiter.get(b"k").outcome, WAITING)
        self.assertTrue(holder.store(b"k", token, was_set.key.version).key.stored)
        self.assertEqual(waiter.wait_turn(b"k").outcome, READY)
        self.assertGreater(waiter.get(b"k").lock_token, token)

    def test_stopped_for_two_leases_kills_nobody(self):
        session = self.session(self.fleet_)
        place(session, [b"k1", b"k2", b"k3"])
        before = self.fleet_.incarnations()
        owners = [self.owner(self.fleet_, name) for name in "abc"]
        self.fleet_.pause("coordinator")
        pass_time(2 * self.LEASE_S, "two leases")
        self.assertEqual([o.status().fence_in_ms for o in owners], [0, 0, 0])
        self.fleet_.resume("coordinator")
        wait_until(lambda: all(o.status().fence_in_ms > 0 for o in owners), "leases are renewed")
        self.assertEqual(self.fleet_.incarnations(), before)
        self.assertEqual([self.fleet_.state(name) for name in "abc"], ["alive"] * 3)
        again = self.session(self.fleet_)
        self.assertEqual([again.read(k).key.value for k in (b"k1", b"k2", b"k3")],
                         [b"first k1", b"first k2", b"first k3"])

    def test_direct_writes_go_on_without_it_until_the_lease_ends(self):
        session = self.session(self.fleet_)
        place(session, [b"k1"])
        header = self.header(self.fleet_, session, b"k1")
        owner = self.owner(self.fleet_, "a")
        self.fleet_.kill("coordinator")
        self.assertEqual(owner.call("Put", header, value=b"alone").result.stored, True)
        wait_until(lambda: owner.status().fence_in_ms == 0, "the lease has run out")
        header.request_id.seq += 1
        with self.assertRaises(grpc.RpcError) as caught:
            owner.call("Put", header, value=b"too late")
        routing, _ = api.routing_error(caught.exception)
        self.assertEqual((routing.reason, routing.applied), ("LEASE_EXPIRED", APPLIED_NO))
        stale = owner.call("Read", header, consistency=api.instance_pb2.CONSISTENCY_STALE_OK)
        self.assertEqual((stale.result.value, stale.result.stale), (b"alone", True))
        self.fleet_.start_coordinator()
        wait_until(lambda: owner.status().fence_in_ms > 0, "the lease is renewed")
        self.assertEqual(self.fleet_.status(b"k1").value, b"alone")


def reopen(session):
    """The same session on a new channel."""
    session.channel = grpc.insecure_channel(session.channel_address)
    session.stub = api.coordinator_pb2_grpc.CoordinatorServiceStub(session.channel)
    session.requests = api.queue.SimpleQueue()
    session.answers = session.stub.Execute(iter(session.requests.get, None))


@unittest.skipIf(MISSING, MISSING)
class OwnerStopped(Failures):
    """An owner that stands still for three leases wakes up with writes in its socket."""

    LEASE_S = 1.0

    def stop_and_write(self, fleet, session, key):
        """SETs and PUTs arrive while the owner stands still; how they end once it goes on."""
        owner = self.owner(fleet, fleet.status(key).owner)
        name = fleet.status(key).owner
        header = self.header(fleet, session, key)
        owner.status()  # connected
        fleet.pause(name)
        late = []
        for verb in ("Set", "Put"):
            header.request_id.seq += 1
            late.append(owner.begin(verb, header, value=b"late"))
        pass_time(3 * self.LEASE_S, "three leases")
        return name, late

    def assert_not_acknowledged(self, late):
        for call in late:
            self.assertIsNotNone(call.exception(timeout=30))
            details = api.routing_error(call)
            if details is not None:  # none where the connection broke: then it is MAYBE
                self.assertIn(details[0].reason, ("LEASE_EXPIRED", "NOT_SERVING",
                                                  "STALE_INCARNATION", "OUTCOME_UNKNOWN"))

    def test_late_write_is_not_acknowledged(self):
        fleet = self.fleet("--lease", "1s")
        session = self.session(fleet)
        place(session, [b"k"])
        incarnation = fleet.incarnations()["a"]
        name, late = self.stop_and_write(fleet, session, b"k")
        self.assertEqual(fleet.state(name), "dead")
        fleet.resume(name)
        self.assert_not_acknowledged(late)
        fleet.wait_state(name, "alive")
        self.assertGreater(fleet.incarnations()["a"], incarnation)
        read = session.read(b"k")
        self.assertEqual((read.key.value, read.instance), (b"first k", "a"))

    def test_late_write_does_not_reach_the_key_that_lives_elsewhere(self):
        fleet = self.fleet("--lease", "1s", "--on-owner-down", "forget")
        session = self.session(fleet)
        place(session, [b"k"])
        name, late = self.stop_and_write(fleet, session, b"k")
        self.assert_fails("KEY_INACCESSIBLE", session.get, b"k")
        token = session.get(b"k").lock_token
        moved = session.set(b"k", b"new life", token)
        self.assertEqual(moved.instance, "b")
        fleet.resume(name)
        self.assert_not_acknowledged(late)
        fleet.wait_state(name, "alive")
        self.assertTrue(session.store(b"k", token, moved.key.version).key.stored)
        self.assertEqual(session.read(b"k").key.value, b"new life")
        self.assertEqual(self.owner(fleet, name).status().n_keys, 0)

    def test_execute_to_a_stopped_owner_ends_in_time_and_has_at_most_one_effect(self):
        fleet = self.fleet("--lease", "1s")
        session = self.session(fleet)
        place(session, [b"k"])
        fleet.pause("a")
        started = time.monotonic()
        with self.assertRaises(StatementFailed) as caught:
            session.run(timeout_ms=500, set=api.pb.SetStatement(key=b"k", value=b"late"))
        self.assertLess(time.monotonic() - started, 2.0)
        self.assertEqual(caught.exception.error.routing.applied, APPLIED_MAYBE)
        pass_time(3 * self.LEASE_S, "three leases")
        fleet.resume("a")
        fleet.wait_state("a", "alive")
        self.assertEqual(session.read(b"k").key.value, b"first k")


@unittest.skipIf(MISSING, MISSING)
class DataDeleted(Failures):
    """rm -rf under a running process: nothing more is acknowledged as durable."""

    def setUp(self):
        self.fleet_ = self.fleet("--lease", "2s", instances="a")
        self.client = self.session(self.fleet_)
        self.client.put(b"k", b"kept")

    def test_of_an_instance(self):
        header = self.header(self.fleet_, self.client, b"k")
        owner = self.owner(self.fleet_, "a")
        shutil.rmtree(self.fleet_.data_dir("a"))
        with self.assertRaises(grpc.RpcError) as caught:
            owner.call("Put", header, value=b"lost")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INTERNAL)
        routing, _ = api.routing_error(caught.exception)
        self.assertEqual((routing.reason, routing.applied), ("STORE_ERROR", APPLIED_MAYBE))
        with self.assertRaises(grpc.RpcError) as caught:
            owner.call("Put", self.header(self.fleet_, self.client, b"k"), value=b"lost")
        self.assertEqual(api.routing_error(caught.exception)[0].applied, APPLIED_NO)
        self.fleet_.wait_state("a", "dead")

    def test_of_an_instance_that_nobody_writes_to(self):
        shutil.rmtree(self.fleet_.data_dir("a"))
        self.fleet_.wait_state("a", "dead")

    def test_of_the_coordinator(self):
        shutil.rmtree(self.fleet_.data_dir("coordinator"))
        for _ in range(2):
            with self.assertRaises(StatementFailed) as caught:
                self.client.put(b"new", b"lost")
            self.assertIn(caught.exception.reason, ("STORE_ERROR", "READ_ONLY"))
        self.assertEqual(self.client.read(b"k").key.value, b"kept")


@unittest.skipIf(MISSING, MISSING)
class EsiKilled(Failures):
    """A holder that vanishes: its locks go on to the next, and what it had sent comes too late."""

    def setUp(self):
        self.fleet_ = self.fleet("--session-lease", "1s", instances="ab")
        self.waiter = self.session(self.fleet_, "waiter")

    def take_over(self, key, token):
        """The waiter gets the key; it held nothing before the holder's lease was over."""
        self.assertEqual(self.waiter.get(key).outcome, WAITING)
        self.assertEqual(self.waiter.wait_turn(key).outcome, READY)
        got = self.waiter.get(key)
        self.assertEqual(got.outcome, DONE)
        self.assertGreater(got.lock_token, token)
        return got

    def assert_late_writes_are_fenced(self, dead, key, token):
        for verb, fields in (("Set", {"value": b"late"}), ("Put", {"value": b"late"}),
                             ("Store", {}), ("Delete", {})):
            with self.assertRaises(grpc.RpcError) as caught:
                self.owner(self.fleet_, self.fleet_.status(key).owner).call(
                    verb, self.header(self.fleet_, dead, key, token), **fields)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.ABORTED, verb)
            routing, _ = api.routing_error(caught.exception)
            self.assertEqual((routing.reason, routing.applied), ("LOCK_FENCED", APPLIED_NO), verb)
        late = api.Session(self.fleet_.coordinator, "late")
        self.addCleanup(late.channel.close)
        for session_id in (dead.id, late.id):
            late.id = session_id
            error = self.assert_fails("LOCK_FENCED", late.set, key, b"late", token)
            self.assertEqual(error.routing.applied, APPLIED_NO)

    def test_c38_redistinto_esi(self):
        gate = self.waiter.get(b"gate").lock_token
        script = self.fleet_.script("GET k\nSET k before\nGET gate\nSET k after\nSTORE k\n")
        self.addCleanup(script.kill)
        token = script.wait_line(1)["lock_token"]
        script.wait_line(3, "waiting")
        started = time.monotonic()
        script.kill()
        got = self.take_over(b"k", token)
        self.assertGreater(time.monotonic() - started, 0.5)  # its lease is 1 s, renewed every third
        self.assertEqual(got.key.value, b"before")
        dead = api.Session(self.fleet_.coordinator, "dead")
        self.addCleanup(dead.channel.close)
        self.assert_late_writes_are_fenced(dead, b"k", token)
        self.waiter.set(b"k", b"mine", got.lock_token)
        self.waiter.store(b"k", got.lock_token)
        self.waiter.store(b"gate", gate)
        self.assertEqual(self.fleet_.status(b"gate").waiters, [])
        self.assertEqual(self.fleet_.status(b"k").value, b"mine")

    def test_c38_client_that_vanishes(self):
        dead = self.fleet_.session("dead")
        token = dead.get(b"k").lock_token
        dead.set(b"k", b"before", token)
        dead.abandon()
        got = self.take_over(b"k", token)
        self.assertEqual(got.key.value, b"before")
        self.assert_late_writes_are_fenced(dead, b"k", token)
        self.assertEqual(self.waiter.read(b"k").key.value, b"before")

    def test_c38_client_that_stands_still_and_comes_back(self):
        script = self.fleet_.script("GET k\nSET k before\nGET gate\nSET k late\n")
        gate = self.waiter.get(b"gate").lock_token
        self.addCleanup(script.kill)
        token = script.wait_line(1)["lock_token"]
        script.wait_line(3, "waiting")
        script.signal(signal.SIGSTOP)
        got = self.take_over(b"k", token)
        self.waiter.set(b"k", b"mine", got.lock_token)
        script.signal(signal.SIGCONT)
        self.waiter.store(b"gate", gate)
        self.assertEqual(script.wait().code, 1)
        self.assertEqual(script.outcomes()[-1], (3, "failed", "SESSION_UNKNOWN"))
        self.assertEqual(self.waiter.read(b"k").key.value, b"mine")

    def test_waiter_that_vanishes_does_not_block_the_queue(self):
        holder, gone = self.session(self.fleet_, "holder"), self.fleet_.session("gone")
        token = holder.get(b"k").lock_token
        self.assertEqual(gone.get(b"k").outcome, WAITING)
        self.assertEqual(self.waiter.get(b"k").outcome, WAITING)
        gone.abandon()
        holder.store(b"k", token)
        self.assertEqual(self.waiter.lock(b"k").outcome, DONE)


if __name__ == "__main__":
    tap.main()
