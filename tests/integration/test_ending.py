"""How processes end when they are asked to, and which do not even start."""
import os
import signal
import time
import unittest

import tap
from cluster import Service, is_running, wait_until

try:
    import grpc

    import api
    from api import WAITING
    from fleet import APPLIED_NO, common, instance_pb
    from fleet_case import FleetCase, place
    from workload import Writer
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


@unittest.skipIf(MISSING, MISSING)
class Ending(FleetCase):
    """SIGTERM and SIGINT end a process with status 0, with nothing left unanswered."""

    def test_all_exit_0_under_load(self):
        fleet = self.fleet()
        writers = [Writer(fleet.coordinator, b"load:%d" % i) for i in range(4)]
        for writer in writers:
            writer.start()
            self.addCleanup(writer.ended.set)
        wait_until(lambda: all(w.acked >= 3 for w in writers), "every writer was acknowledged")
        self.assertEqual([fleet.stop(name) for name in ("c", "b", "a", "coordinator")], [0] * 4)
        acked = [w.acked for w in writers]
        for writer in writers:
            writer.ended.set()
        fleet.start()
        for writer in writers:
            writer.stop()
            self.assertEqual(writer.refused, [])
        for writer, n in zip(writers, acked):
            self.assertGreaterEqual(int(fleet.status(writer.key).value), n)

    def test_sigint_too(self):
        fleet = self.fleet(instances="a")
        for name in ("a", "coordinator"):
            service = fleet.services.pop(name)
            service.signal(signal.SIGINT)
            self.assertEqual(service.wait_exit(), 0)

    def test_instance_says_goodbye(self):
        fleet = self.fleet("--lease", "1h")
        session = self.session(fleet)
        place(session, [b"k1", b"k2"])
        self.assertEqual(fleet.stop("a"), 0)
        self.assertEqual([fleet.state(name) for name in "abc"], ["left", "alive", "alive"])
        error = self.assert_fails("OWNER_DOWN", session.run, timeout_ms=200,
                                  read=api.pb.ReadStatement(key=b"k1"))
        self.assertEqual(error.code, grpc.StatusCode.UNAVAILABLE.value[0])
        self.assertEqual(session.read(b"k2").key.value, b"first k2")
        fleet.start_instance("a")
        self.assertEqual(session.read(b"k1").key.value, b"first k1")

    def test_coordinator_answers_what_waits(self):
        fleet = self.fleet(instances="a")
        holder, waiter = self.session(fleet, "holder"), self.session(fleet, "waiter")
        holder.get(b"k")
        self.assertEqual(waiter.get(b"k").outcome, WAITING)
        waiter.seq += 1
        waiter.requests.put(api.pb.ExecuteRequest(
            statement_id=waiter.seq, session_id=waiter.id, timeout_ms=60000,
            request_id=common.RequestId(client_id=waiter.client_id, seq=waiter.seq),
            await_turn=api.pb.AwaitStatement(key=b"k")))
        holder.read(b"k")  # the coordinator has read what came before
        started = time.monotonic()
        self.assertEqual(fleet.stop("coordinator"), 0)
        self.assertLess(time.monotonic() - started, 3)
        try:
            answer = next(waiter.answers)
            self.assertEqual(answer.error.routing.reason, "DRAINING")
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
        except StopIteration:
            pass  # the stream ended before the statement was read: it was never taken

    def test_open_streams_do_not_delay_the_end_of_the_coordinator(self):
        fleet = self.fleet("--drain-timeout", "30s", instances="a")
        self.session(fleet).get(b"k")  # Execute and KeepAlive, and Reconcile of the instance
        started = time.monotonic()
        self.assertEqual(fleet.stop("coordinator"), 0)
        self.assertLess(time.monotonic() - started, 10)

    def test_second_sigterm_changes_nothing(self):
        fleet = self.fleet(instances="a")
        service = fleet.services.pop("a")
        service.signal(signal.SIGTERM)
        service.signal(signal.SIGTERM)
        self.assertEqual(service.wait_exit(), 0)
        self.assertEqual(fleet.state("a"), "left")


@unittest.skipIf(MISSING, MISSING)
class Fates(FleetCase):
    """Of PUTs that are under way, each for a key of its own, when a process is asked to end: each
    is answered OK and there, refused as not applied and not there, or UNAVAILABLE. Core answers
    those that it has not handed over yet by CANCELLED: they are not there either."""

    N = 300

    def routed(self, i):
        request_id = common.RequestId(client_id=self.client_id, seq=i + 1)
        return self.stub.Execute(iter([api.pb.ExecuteRequest(
            statement_id=1, session_id=self.session_.id, timeout_ms=5000, request_id=request_id,
            put=api.pb.PutStatement(key=b"k:%d" % i, value=b"new"))]), timeout=20)

    @staticmethod
    def routed_fate(call):
        answer = next(call)  # the end of the stream may say more, and of later statements only
        if answer.WhichOneof("outcome") == "result":
            return "OK"
        return "NO" if answer.error.routing.applied == APPLIED_NO else answer.error.code

    def direct(self, i):
        header = instance_pb.OperationHeader(
            cluster_id=self.cluster_id, key=b"k:%d" % i, owner="a", epoch=self.epochs[i],
            incarnation=self.incarnation,
            request_id=common.RequestId(client_id=self.client_id, seq=i + 1))
        return self.owner_.stub.Put.future(
            instance_pb.InstanceServicePutRequest(header=header, value=b"new"), timeout=20)

    @staticmethod
    def direct_fate(call):
        call.result()
        return "OK"

    def fate(self, find, call):
        try:
            return find(call)
        except grpc.RpcError as error:
            found = api.routing_error(error)
            if found and found[0].applied == APPLIED_NO:
                return "NO"
            return error.code().name

    def end_amid(self, fleet, name, begin, find):
        """What came of each; the process has ended and is there again."""
        calls = [begin(i) for i in range(self.N)]
        first = self.fate(find, calls[0])
        fleet.services[name].signal(signal.SIGTERM)
        fates = [first, *(self.fate(find, call) for call in calls[1:])]
        self.assertEqual(fleet.services.pop(name).wait_exit(), 0)
        if name == "coordinator":
            fleet.start_coordinator()
        else:
            fleet.start_instance(name)
        wait_until(lambda: fleet.state("a") == "alive", "a is alive again")
        self.assertLessEqual(set(fates), {"OK", "NO", "UNAVAILABLE", "CANCELLED"})
        self.assertEqual(first, "OK")
        return fates

    def assert_fates(self, fleet, fates, before):
        for i, fate in enumerate(fates):
            value = fleet.status(b"k:%d" % i).value
            if fate != "UNAVAILABLE":
                self.assertEqual(value, b"new" if fate == "OK" else before, (i, fate))

    def open(self):
        fleet = self.fleet(instances="a")
        self.session_ = self.session(fleet)
        self.stub, self.client_id = self.session_.stub, os.urandom(16)
        return fleet

    def test_when_the_coordinator_ends(self):
        fleet = self.open()
        self.assert_fates(
            fleet, self.end_amid(fleet, "coordinator", self.routed, self.routed_fate), b"")

    def test_when_the_owner_ends(self):
        fleet = self.open()
        self.assert_fates(fleet, self.end_amid(fleet, "a", self.routed, self.routed_fate), b"")

    def test_when_the_owner_ends_that_is_asked_directly(self):
        fleet = self.open()
        self.owner_ = self.owner(fleet, "a")
        self.cluster_id = self.owner_.status().cluster_id
        self.incarnation = fleet.incarnations()["a"]
        self.epochs = [self.session_.put(b"k:%d" % i, b"old").epoch for i in range(self.N)]
        self.assert_fates(fleet, self.end_amid(fleet, "a", self.direct, self.direct_fate), b"old")


@unittest.skipIf(MISSING, MISSING)
class TakenPorts(FleetCase):
    """One server a port."""

    def setUp(self):
        self.fleet_ = self.fleet(instances="a")

    def assert_refused(self, service, address):
        self.assertNotEqual(service.wait_exit(), 0)
        self.assertIn(address, service.logged())
        self.assertEqual(self.fleet_.state("a"), "alive")
        self.assertEqual(self.fleet_.cli("health").code, 0)
        self.assertTrue(is_running(self.fleet_.services["a"].pid))

    def test_instance_on_the_port_of_another(self):
        address = self.fleet_.addresses["a"]
        service = self.fleet_.spawn_instance("b", listen=address)
        self.assert_refused(service, address)
        self.assertEqual(list(self.fleet_.members()), ["a"])

    def test_instance_on_the_port_of_the_coordinator(self):
        service = self.fleet_.spawn_instance("b", listen=self.fleet_.coordinator)
        self.assert_refused(service, self.fleet_.coordinator)

    def test_coordinator_on_the_port_of_an_instance(self):
        address = self.fleet_.addresses["a"]
        service = Service("redistinto-coordinator", "--listen", address, "--data-dir",
                          self.fleet_.data_dir("other"), directory=self.fleet_.directory)
        self.assert_refused(service, address)


if __name__ == "__main__":
    tap.main()
