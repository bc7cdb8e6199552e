"""Debian's Python gRPC as a client: stubs generated from proto/ by grpc_tools when the test starts.

The client is that of the integration tests (api.py, fleet.py), which is made of nothing but the
public API; the steps are those of scenario.mjs, which the JavaScript clients run.
"""
import importlib
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

INTEGRATION = str(pathlib.Path(__file__).resolve().parent.parent / "integration")
sys.path.insert(0, INTEGRATION)
GRPC_PROTO = "/usr/share/grpc-proto"
COORDINATOR_SERVICE = "redistinto.v1.CoordinatorService"
ESI_SERVICE = "redistinto.v1.EsiService"

import tap  # noqa: E402

try:
    import grpc
    from google.protobuf import descriptor_pb2

    import api
    from cluster import DEADLINE_S, Service
    from fleet import APPLIED_NO, Fleet, Owner, common, instance_pb, pb
    MISSING = None
except unittest.SkipTest as skip:
    MISSING = str(skip)
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"


def stubs(name, module):
    """The messages and stubs of a standard service, generated like any other client's."""
    with tempfile.TemporaryDirectory(prefix="redistinto-stubs-") as out:
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{GRPC_PROTO}/grpc/{name}/v1",
                        f"--python_out={out}", f"--grpc_python_out={out}", f"{module}.proto"],
                       check=True)
        sys.path.insert(0, out)
        messages = importlib.import_module(f"{module}_pb2")
        services = importlib.import_module(f"{module}_pb2_grpc")
        sys.path.remove(out)
    return messages, services


@unittest.skipIf(MISSING, MISSING)
class Client(unittest.TestCase):
    """Two sessions, `a` and `b`, of one cluster of two instances."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = cls.enterClassContext(Fleet(instances="ab"))

    def setUp(self):
        self.a, self.b = self.session("a"), self.session("b")
        self.key = self.id().encode()

    def session(self, name):
        session = self.fleet.session(name)
        self.addCleanup(session.close)
        return session

    def test_session_is_kept_alive(self):
        stub = self.a.stub
        requests = [pb.KeepAliveRequest(exchange_id=i, session_id=self.a.id) for i in (1, 2)]
        answers = list(stub.KeepAlive(iter(requests)))
        self.assertEqual([answer.exchange_id for answer in answers], [1, 2])
        self.assertTrue(all(answer.result.lease_ms > 0 for answer in answers))

    def test_script_of_statements(self):
        held = self.a.get(self.key)
        self.assertEqual(held.outcome, api.DONE)
        written = self.a.set(self.key, b"one", held.lock_token)
        self.assertIn(written.instance, ("a", "b"))
        stored = self.a.store(self.key, held.lock_token, written.key.version)
        self.assertTrue(stored.key.stored)
        read = self.a.read(self.key).key
        self.assertEqual((read.value, read.version), (b"one", stored.key.version))

    def test_get_that_waits(self):
        held = self.a.get(self.key)
        waiting = self.b.get(self.key)
        self.assertEqual((waiting.outcome, waiting.holder), (api.WAITING, "a"))
        turn = self.b.begin(await_turn=pb.AwaitStatement(key=self.key))
        written = self.a.set(self.key, b"from a", held.lock_token)
        self.a.store(self.key, held.lock_token, written.key.version)
        self.assertEqual(self.b.finish(turn).outcome, api.READY)
        got = self.b.get(self.key)
        self.assertEqual((got.outcome, got.key.value), (api.DONE, b"from a"))
        self.b.store(self.key, got.lock_token)

    def failure(self, code, reason, call, *arguments, **keywords):
        """The RoutingError of a unary call that fails."""
        with self.assertRaises(grpc.RpcError) as caught:
            call(*arguments, **keywords)
        routing, status = api.routing_error(caught.exception)
        info = api.error_details_pb2.ErrorInfo()
        self.assertTrue(any(detail.Unpack(info) for detail in status.details))
        self.assertEqual((caught.exception.code(), info.reason, info.domain, routing.reason),
                         (code, reason, "redistinto", reason))
        return routing

    def test_details_of_a_failed_call(self):
        with self.fleet.owner("a") as owner:
            routing = self.failure(grpc.StatusCode.INVALID_ARGUMENT, "KEY_EMPTY", owner.call,
                                   "Set", instance_pb.OperationHeader())
        self.assertEqual(routing.applied, APPLIED_NO)

    def test_details_of_a_failed_statement(self):
        with self.assertRaises(api.StatementFailed) as caught:
            self.a.store(self.key)
        error = caught.exception.error
        self.assertEqual((error.code, error.routing.reason, error.routing.applied),
                         (grpc.StatusCode.NOT_FOUND.value[0], "KEY_NOT_IDENTIFIED", APPLIED_NO))

    def test_stale_route_and_its_hint(self):
        token = self.a.get(self.key).lock_token
        written = self.a.set(self.key, b"routed", token)
        with self.fleet.owner(written.instance) as owner:
            route = {"owner": written.instance, "epoch": written.epoch - 1,
                     "incarnation": written.key.version.incarnation}

            def put(**route):
                self.a.seq += 1
                return owner.call("Put", instance_pb.OperationHeader(
                    cluster_id=owner.status().cluster_id, key=self.key, lock_token=token,
                    request_id=common.RequestId(client_id=self.a.client_id, seq=self.a.seq),
                    **route), value=b"direct")

            routing = self.failure(grpc.StatusCode.FAILED_PRECONDITION, "STALE_EPOCH", put, **route)
            self.assertEqual(routing.applied, APPLIED_NO)
            self.assertEqual(routing.hint.address, self.fleet.addresses[written.instance])
            put(owner=routing.hint.name, epoch=routing.hint.epoch,
                incarnation=routing.hint.incarnation)
        self.assertEqual(self.a.read(self.key).key.value, b"direct")

    def test_statement_past_its_deadline(self):
        self.a.get(self.key)
        self.assertEqual(self.b.get(self.key).outcome, api.WAITING)
        with self.assertRaises(api.StatementFailed) as caught:
            self.b.run(100, await_turn=pb.AwaitStatement(key=self.key))
        self.assertEqual((caught.exception.error.code, caught.exception.error.routing.applied),
                         (grpc.StatusCode.DEADLINE_EXCEEDED.value[0], APPLIED_NO))

    def lock(self, session, key, timeout=10, **fields):
        session.seq += 1
        return session.stub.Lock(pb.LockRequest(
            session_id=session.id, key=key, request_id=common.RequestId(
                client_id=session.client_id, seq=session.seq), **fields), timeout=timeout)

    def unlock(self, session, key, token):
        session.stub.Unlock(pb.UnlockRequest(session_id=session.id, key=key, lock_token=token),
                            timeout=10)

    def route(self, operation):
        """The route for an operation on the test's key, by the name of the operation."""
        return self.a.stub.Route(pb.RouteRequest(
            key=self.key, operation=pb.RouteOperation.Value(f"ROUTE_OPERATION_{operation}"),
            session_id=self.a.id), timeout=10).route

    def operate(self, verb, route, **fields):
        """Sends an operation on the test's key where a route says."""
        self.a.seq += 1
        with Owner(route.address) as owner:
            return owner.call(verb, instance_pb.OperationHeader(
                cluster_id=route.cluster_id, key=self.key, epoch=route.epoch, owner=route.owner,
                incarnation=route.incarnation, request_id=common.RequestId(
                    client_id=self.a.client_id, seq=self.a.seq)), **fields).result

    def test_lock_that_waits_for_its_deadline(self):
        held = self.lock(self.a, self.key)
        self.assertEqual((held.outcome, held.HasField("route")), (api.DONE, False))
        told = self.lock(self.b, self.key, no_wait=True)
        self.assertEqual((told.outcome, told.holder), (api.WAITING, "a"))
        with self.assertRaises(grpc.RpcError) as caught:
            self.lock(self.b, self.key, timeout=0.2)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        written = self.a.set(self.key, b"v", held.lock_token)
        self.unlock(self.a, self.key, held.lock_token)
        got = self.lock(self.b, self.key)
        self.assertEqual((got.outcome, got.key.value, got.route.owner, got.route.address),
                         (api.DONE, b"v", written.instance, self.fleet.addresses[written.instance]))
        self.unlock(self.a, self.key, held.lock_token)
        self.assertEqual(self.lock(self.a, self.key, no_wait=True).holder, "b")
        self.unlock(self.b, self.key, got.lock_token)
        self.unlock(self.b, self.key, got.lock_token)
        self.assertEqual(self.lock(self.a, self.key).outcome, api.DONE)

    def test_route_followed_and_asked_for_again(self):
        self.failure(grpc.StatusCode.NOT_FOUND, "KEY_NOT_IDENTIFIED", self.route, "READ")
        route = self.route("PUT")
        self.assertTrue(self.operate("Put", route, value=b"put").stored)
        self.operate("Set", route, value=b"set")
        self.assertEqual(self.operate("Read", self.route("READ")).value, b"set")
        stale = pb.Route()
        stale.CopyFrom(route)
        stale.epoch -= 1
        routing = self.failure(grpc.StatusCode.FAILED_PRECONDITION, "STALE_EPOCH", self.operate,
                               "Set", stale, value=b"late")
        fresh, hint = self.route("SET"), routing.hint
        self.assertEqual((routing.applied, hint.name, hint.address, hint.incarnation, hint.epoch),
                         (APPLIED_NO, fresh.owner, fresh.address, fresh.incarnation, fresh.epoch))
        self.operate("Set", fresh, value=b"late")
        self.assertEqual(self.a.read(self.key).key.value, b"late")

    def test_routes_are_watched(self):
        watch = self.a.stub.WatchRoutes(pb.WatchRoutesRequest(prefix=self.key), timeout=30)
        first = next(watch)
        self.assertTrue(first.reset)
        self.assertEqual({seen.name: seen.address for seen in first.instances},
                         self.fleet.addresses)
        route = self.route("PUT")
        change = next(key for told in watch for key in told.keys if key.owner)
        self.assertEqual((change.key, change.owner, change.epoch),
                         (self.key, route.owner, route.epoch))
        watch.cancel()
        with self.assertRaises(grpc.RpcError) as caught:
            next(watch)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)

    def test_batches_of_operations(self):
        token = self.a.get(self.key).lock_token
        written = self.a.set(self.key, b"0", token)
        self.a.store(self.key, token)

        def operation(kind, **fields):
            return instance_pb.PipelineOperation(**{
                "kind": instance_pb.PipelineOperationKind.Value(f"PIPELINE_OPERATION_KIND_{kind}"),
                "key": self.key, "epoch": written.epoch, **fields})

        with self.fleet.owner(written.instance) as owner:
            shared = {"cluster_id": owner.status().cluster_id, "owner": written.instance,
                      "incarnation": written.key.version.incarnation}
            first, second = owner.stub.Pipeline(iter([
                instance_pb.InstanceServicePipelineRequest(batch_id=1, **shared, operations=[
                    operation("SET", value=b"1"), operation("SET", key=b""), operation("READ")]),
                instance_pb.InstanceServicePipelineRequest(batch_id=2, **shared, operations=[
                    operation("STORE"), operation("READ")])]), timeout=10)
        written, refused, read = first.result.results
        self.assertEqual((refused.error.code, refused.error.routing.reason),
                         (grpc.StatusCode.INVALID_ARGUMENT.value[0], "KEY_EMPTY"))
        self.assertEqual((first.batch_id, read.value, read.seq), (1, b"1", written.seq))
        self.assertEqual((second.batch_id, [result.stored for result in second.result.results]),
                         (2, [True, True]))


@unittest.skipIf(MISSING, MISSING)
class Health(unittest.TestCase):
    """grpc.health.v1 while the servers drain."""

    def watch_through_drain(self, fleet, name, address, service):
        health_pb2, health_pb2_grpc = stubs("health", "health")
        with grpc.insecure_channel(address) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(service=service))
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
            running = fleet.services.pop(name)
            running.signal(signal.SIGTERM)
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            with self.assertRaises(grpc.RpcError) as caught:
                next(watch)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(running.wait_exit(), 0)

    def test_servers_drain(self):
        with Fleet(instances="a") as fleet:
            self.watch_through_drain(fleet, "a", fleet.addresses["a"], "")
            routes = api.coordinator_pb2_grpc.CoordinatorServiceStub(fleet.channel).WatchRoutes(
                pb.WatchRoutesRequest(), timeout=30)
            self.assertTrue(next(routes).reset)
            self.watch_through_drain(fleet, "coordinator", fleet.coordinator, COORDINATOR_SERVICE)
            with self.assertRaises(grpc.RpcError) as caught:
                list(routes)
            routing, _ = api.routing_error(caught.exception)
            self.assertEqual((caught.exception.code(), routing.reason),
                             (grpc.StatusCode.UNAVAILABLE, "DRAINING"))


@unittest.skipIf(MISSING, MISSING)
class Esis(unittest.TestCase):
    """EsiService, beside a cluster of one instance."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = cls.enterClassContext(Fleet(instances="a"))
        cls.service = Service("redistinto-esi", "serve", "--planner", "fifo", "--listen",
                              "127.0.0.1:0", "--coordinator", cls.fleet.coordinator,
                              directory=cls.fleet.directory)
        cls.addClassCleanup(cls.service.kill)
        channel = grpc.insecure_channel(cls.service.wait_ready().address)
        cls.channel = cls.enterClassContext(channel)
        cls.stub = api.esi_pb2_grpc.EsiServiceStub(cls.channel)

    def submit(self, name, script):
        return self.stub.Submit(api.esi_pb2.EsiServiceSubmitRequest(name=name, script=script),
                                timeout=10).esi.id

    def wait(self, number):
        return self.stub.Status(api.esi_pb2.EsiServiceStatusRequest(id=number, wait=True),
                                timeout=DEADLINE_S).esi

    def test_a_script_is_handed_over_and_waited_for(self):
        number = self.submit("python", b"GET esi:p\nSET esi:p v\nSTORE esi:p\n")
        ended = self.wait(number)
        self.assertEqual((ended.name, ended.end, ended.n_ok),
                         ("python", api.esi_pb2.ESI_END_OK, 3))
        self.assertEqual(self.fleet.status(b"esi:p").value, b"v")
        listed = self.stub.List(api.esi_pb2.EsiServiceListRequest(), timeout=10)
        self.assertEqual((listed.planner, listed.paused), ("fifo", False))
        self.assertIn(number, [esi.id for esi in listed.esis])

    def test_one_is_blocked_and_unblocked_while_paused(self):
        self.stub.Pause(api.esi_pb2.EsiServicePauseRequest(), timeout=10)
        number = self.submit("blocked", b"GET esi:own\nSTORE esi:own\n")
        other = self.submit("other", b"GET esi:other\nSTORE esi:other\n")
        for esi in (number, other):
            self.stub.Block(api.esi_pb2.EsiServiceBlockRequest(key=b"esi:k", id=esi), timeout=10)
        waiting = self.stub.List(api.esi_pb2.EsiServiceListRequest(waits_for=b"esi:k"), timeout=10)
        self.assertEqual([esi.id for esi in waiting.esis], [other])
        woken = self.stub.Unblock(api.esi_pb2.EsiServiceUnblockRequest(key=b"esi:k"), timeout=10)
        self.assertEqual((woken.woken, woken.n_waiting), (other, 0))
        found = self.stub.Deadlock(api.esi_pb2.EsiServiceDeadlockRequest(), timeout=10)
        self.assertEqual(list(found.esis), [])
        self.stub.Resume(api.esi_pb2.EsiServiceResumeRequest(), timeout=10)
        for esi in (number, other):
            self.assertEqual(self.wait(esi).end, api.esi_pb2.ESI_END_OK)

    def test_details_of_a_failed_call(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Kill(api.esi_pb2.EsiServiceKillRequest(id=1 << 40), timeout=10)
        routing, _ = api.routing_error(caught.exception)
        self.assertEqual((caught.exception.code(), routing.reason, routing.applied),
                         (grpc.StatusCode.NOT_FOUND, "ESI_UNKNOWN", APPLIED_NO))

    def test_health(self):
        health_pb2, health_pb2_grpc = stubs("health", "health")
        stub = health_pb2_grpc.HealthStub(self.channel)
        for service in ("", ESI_SERVICE):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)

    def test_reflection_describes_every_method(self):
        messages, services = stubs("reflection", "reflection")
        stub = services.ServerReflectionStub(self.channel)
        listed, described = stub.ServerReflectionInfo(iter([
            messages.ServerReflectionRequest(list_services=""),
            messages.ServerReflectionRequest(file_containing_symbol=ESI_SERVICE)]), timeout=10)
        names = {service.name for service in listed.list_services_response.service}
        self.assertEqual({name for name in names if name.startswith("redistinto")}, {ESI_SERVICE})
        files = [descriptor_pb2.FileDescriptorProto.FromString(text) for text in
                 described.file_descriptor_response.file_descriptor_proto]
        methods = {method.name for file in files for service in file.service
                   for method in service.method if service.name == "EsiService"}
        expected = api.esi_pb2.DESCRIPTOR.services_by_name["EsiService"].methods_by_name
        self.assertEqual(methods, set(expected))


if __name__ == "__main__":
    tap.main()
