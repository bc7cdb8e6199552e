"""InstanceService.Pipeline of a real instance: order, limits, clients that do not read or vanish.

How many batches may be under way is tested in tests/unit/host, where operations can be held up.
Fields and messages that no good client sends are in test_bad_input.py.
"""
import os
import queue
import threading
import unittest

import tap
from cluster import wait_until

try:
    import grpc

    from fleet import APPLIED_NO, RECONNECT_SOON, api, instance_pb
    from fleet_case import FleetCase
    from one_fleet_case import EXHAUSTED, MIB, OneFleetCase, resident_bytes
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase, OneFleetCase = str(skip), unittest.TestCase, unittest.TestCase
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"
    FleetCase, OneFleetCase = unittest.TestCase, unittest.TestCase

if not MISSING:
    SET, STORE, PUT, READ, DELETE = (
        getattr(instance_pb, f"PIPELINE_OPERATION_KIND_{name}")
        for name in ("SET", "STORE", "PUT", "READ", "DELETE"))

OPERATIONS_MAX = 1024  # of a batch
VALUES_MAX = 2 * 1024 * 1024  # bytes read in a response


class Stream:
    """One Pipeline stream; batches are sent as they come, answers are read when asked for."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, RECONNECT_SOON)
        self.requests = queue.SimpleQueue()
        pipeline = self.channel.stream_stream(
            "/redistinto.v1.InstanceService/Pipeline",
            lambda r: r if isinstance(r, bytes) else r.SerializeToString(),
            instance_pb.InstanceServicePipelineResponse.FromString)
        self.answers = pipeline(iter(self.requests.get, None))

    def send(self, batch):
        self.requests.put(batch)

    def next(self):
        return next(self.answers)

    def results(self):
        """Of the next answer."""
        answer = self.next()
        assert answer.WhichOneof("outcome") == "result", answer
        return answer.result.results

    def finish(self):
        """Half-closes; the answers to all that was sent."""
        self.requests.put(None)
        return list(self.answers)

    def cancel(self):
        self.requests.put(None)
        self.answers.cancel()
        self.channel.close()


def operation(kind, key, epoch, **fields):
    return instance_pb.PipelineOperation(kind=kind, key=key, epoch=epoch, **fields)


def reasons(results):
    return [result.error.routing.reason for result in results]


def versions(results):
    return [(result.epoch, result.incarnation, result.seq) for result in results]


class PipelineCase(OneFleetCase):
    """The instance holds 2 MiB."""

    def stream(self):
        stream = Stream(self.cluster.addresses["a"])
        self.addCleanup(stream.cancel)
        return stream

    def setUp(self):
        super().setUp()
        self.incarnation = self.cluster.incarnations()["a"]

    def batch(self, operations, batch_id=1, **fields):
        return instance_pb.InstanceServicePipelineRequest(
            batch_id=batch_id, operations=operations, cluster_id=self.cluster_id, owner="a",
            incarnation=self.incarnation, **fields)

    def place(self, key, value=b""):
        """A key with a value and without a lock; its epoch."""
        self.client.put(key, value)
        self.addCleanup(self.client.delete, key)
        return self.cluster.status(key).epoch


@unittest.skipIf(MISSING, MISSING)
class Order(PipelineCase):
    """Operations of a stream take effect, and are answered, in the order in which they came."""

    def test_every_kind(self):
        epoch, stream = self.place(b"k", b"old"), self.stream()
        stream.send(self.batch([
            operation(READ, b"k", epoch), operation(SET, b"k", epoch, value=b"set"),
            operation(READ, b"k", epoch), operation(STORE, b"k", epoch),
            operation(PUT, b"k", epoch, value=b"put"), operation(READ, b"k", epoch),
            operation(DELETE, b"k", epoch), operation(READ, b"k", epoch),
            operation(PUT, b"k", epoch, value=b"")], batch_id=77))
        answer = stream.next()
        self.assertEqual((answer.batch_id, answer.responder.name), (77, "a"))
        results = answer.result.results
        self.assertEqual(reasons(results), [""] * 9)
        self.assertEqual([results[i].value for i in (0, 2, 5)], [b"old", b"set", b"put"])
        self.assertEqual([r.HasField("value") for r in results],
                         [True, False, True, False, False, True, False, False, False])
        self.assertEqual([r.stored for r in results],
                         [True, False, False, True, True, True, False, False, True])
        written = versions(results)  # a STORE and a DELETE make versions too
        self.assertEqual([written[2], written[5]], [written[1], written[4]])
        self.assertEqual([written[i][2] for i in (3, 4, 8)],
                         [written[1][2] + i for i in (1, 2, 4)])
        self.assertEqual(self.client.read(b"k").key.value, b"")
        self.assertEqual(stream.finish(), [])

    def test_one_key_through_many_batches(self):
        """Durable and volatile writes in turn, each read at once; nobody waits for an answer."""
        epoch, stream = self.place(b"k"), self.stream()
        n_batches, n_rounds = 40, 5
        value = iter(range(n_batches * n_rounds * 2))
        for i in range(n_batches):
            operations = []
            for _ in range(n_rounds):
                operations += [operation(PUT, b"k", epoch, value=b"%d" % next(value)),
                               operation(READ, b"k", epoch),
                               operation(SET, b"k", epoch, value=b"%d" % next(value)),
                               operation(READ, b"k", epoch)]
            stream.send(self.batch(operations, batch_id=i))
        answers = stream.finish()
        self.assertEqual([answer.batch_id for answer in answers], list(range(n_batches)))
        results = [result for answer in answers for result in answer.result.results]
        self.assertEqual([int(read.value) for read in results[1::2]], list(range(2 * n_batches *
                                                                                 n_rounds)))
        written = versions(results[0::2])
        self.assertEqual(written, versions(results[1::2]))
        self.assertEqual(written, sorted(set(written)))

    def test_streams_beside_each_other(self):
        """Each stream sees its own order; what both write to is one of the two."""
        epoch = self.place(b"k")
        own = {name: self.place(name) for name in (b"x", b"y")}
        streams = {name: self.stream() for name in own}
        for i in range(100):
            for name, stream in streams.items():
                stream.send(self.batch([
                    operation(PUT, b"k", epoch, value=name + b"%d" % i),
                    operation(PUT, name, own[name], value=b"%d" % i),
                    operation(READ, name, own[name])], batch_id=i))
        for name, stream in streams.items():
            answers = stream.finish()
            self.assertEqual([answer.batch_id for answer in answers], list(range(100)))
            self.assertEqual([int(answer.result.results[2].value) for answer in answers],
                             list(range(100)))
        self.assertIn(self.client.read(b"k").key.value, (b"x99", b"y99"))

    def test_operations_that_the_instance_refuses_fail_alone(self):
        epoch, stream = self.place(b"k", b"first"), self.stream()
        other = api.common_pb2.Version(epoch=epoch, incarnation=self.incarnation, seq=1000000)
        self.place(b"big", b"x" * MIB)
        self.place(b"pair", b"x" * 2048)  # two entries: not to be evicted
        stream.send(self.batch([
            operation(PUT, b"k", epoch, value=b"second"),
            operation(PUT, b"k", epoch, value=b"no", if_version=other),
            operation(PUT, b"k", epoch - 1, value=b"no"),
            operation(PUT, b"k", epoch, value=b"no", lock_token=1),
            operation(SET, b"k", epoch, value=b"x" * MIB),
            operation(READ, b"k", epoch), operation(SET, b"k", epoch, value=b"third")]))
        results = stream.results()
        self.assertEqual(reasons(results), ["", "VERSION_MISMATCH", "STALE_EPOCH",
                                            "KEY_NOT_LOCKED", "NO_ENTRIES", "", ""])
        self.assertEqual({r.error.routing.applied for r in results[1:5]}, {APPLIED_NO})
        self.assertEqual(results[5].value, b"second")
        self.assertEqual(self.client.read(b"k").key.value, b"third")

    def test_batch_that_is_sent_again_is_not_done_again(self):
        epoch, client_id = self.place(b"k"), os.urandom(16)
        batch = self.batch([operation(PUT, b"k", epoch, value=b"1", seq=1),
                            operation(SET, b"k", epoch, value=b"2", seq=2)], client_id=client_id)
        first, again = self.stream(), self.stream()
        first.send(batch)
        done = first.results()
        self.client.put(b"k", b"3")
        again.send(batch)
        replayed = again.results()
        self.assertEqual([r.replayed for r in done], [False, False])
        self.assertEqual([r.replayed for r in replayed], [True, True])
        self.assertEqual(versions(replayed), versions(done))
        self.assertEqual(self.client.read(b"k").key.value, b"3")


@unittest.skipIf(MISSING, MISSING)
class Limits(PipelineCase):
    """At each limit, and one past it."""

    def test_operations_of_a_batch(self):
        epoch, stream = self.place(b"k"), self.stream()
        for i, n in enumerate((OPERATIONS_MAX, OPERATIONS_MAX + 1, 1, 0)):
            stream.send(self.batch([operation(SET, b"k", epoch, value=b"%d %d" % (n, k))
                                    for k in range(n)], batch_id=i))
        most, more, one, none = stream.finish()
        self.assertEqual(reasons(most.result.results), [""] * OPERATIONS_MAX)
        self.assertEqual((more.batch_id, more.error.code, more.error.routing.reason,
                          more.error.routing.applied),
                         (1, EXHAUSTED.value[0], "LIMIT_REACHED", APPLIED_NO))
        self.assertEqual(reasons(one.result.results), [""])
        self.assertEqual(one.result.results[0].seq, most.result.results[-1].seq + 1)
        self.assertEqual((none.batch_id, none.WhichOneof("outcome")), (3, "result"))

    def test_bytes_of_a_message(self):
        """Four operations and what the server does not know, 4 MiB in all, and a byte more."""
        epoch = self.place(b"k")
        plain = self.batch([operation(SET, b"k", epoch, value=b"x" * (MIB // 4))] * 4,
                           timeout_ms=30000).SerializeToString()
        tag, n = b"\xc2\x3e", 4 * MIB - len(plain) - 6  # field 1000, bytes; its length has 4 bytes
        length = bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, n >> 21])
        largest = plain + tag + length + bytes(n)
        self.assertEqual(len(largest), 4 * MIB)
        stream = self.stream()
        for _ in range(8):
            stream.send(largest)
        for _ in range(8):
            self.assertEqual(reasons(stream.results()), [""] * 4)
        before = self.owner_.status().n_operations
        stream.send(largest + b"\x00")
        with self.assertRaises(grpc.RpcError) as caught:
            stream.next()
        self.assertEqual(caught.exception.code(), EXHAUSTED)
        self.assertEqual(self.owner_.status().n_operations, before)
        self.assert_serves()

    def test_values_of_a_response(self):
        """What does not fit is refused, and what comes after it is done."""
        half, one = self.place(b"half", b"h" * (VALUES_MAX // 2)), self.place(b"one", b"1")
        stream = self.stream()
        reads = [operation(READ, b"half", half)] * 2
        stream.send(self.batch(reads))
        self.assertEqual([len(r.value) for r in stream.results()], [VALUES_MAX // 2] * 2)
        stream.send(self.batch([*reads, operation(READ, b"one", one), *reads,
                                operation(SET, b"one", one, value=b"2"),
                                operation(READ, b"one", one)]))
        results = stream.results()
        self.assertEqual(reasons(results), ["", "", "LIMIT_REACHED", "LIMIT_REACHED",
                                            "LIMIT_REACHED", "", "LIMIT_REACHED"])
        self.assertEqual({(r.error.code, r.error.routing.applied) for r in results
                          if r.HasField("error")}, {(EXHAUSTED.value[0], APPLIED_NO)})
        stream.send(self.batch([operation(READ, b"one", one)]))
        self.assertEqual(stream.results()[0].value, b"2")

    def test_client_that_does_not_read(self):
        """It costs a few MiB, however much it asks for; once it reads, it gets everything."""
        n_batches, n_streams = 100, 4
        epoch = self.place(b"k", b"v" * MIB)
        pid = self.cluster.services["a"].pid
        batch = self.batch([operation(READ, b"k", epoch)] * 2)

        def operations():
            return self.owner_.status().n_operations

        def stall():
            before = operations()
            streams = [self.stream() for _ in range(n_streams)]
            for stream in streams:
                for _ in range(n_batches):
                    stream.send(batch)
            wait_until(lambda: operations() >= before + 2 * n_streams, "every stream is served")
            for _ in range(20):
                self.assert_serves()
            self.assertLess(operations() - before, n_streams * n_batches)
            return streams

        def stall_and_vanish():
            for stream in stall():
                stream.cancel()

        size = resident_bytes(pid)
        streams = stall()
        # Half of what the answers would take.
        self.assertLess(resident_bytes(pid) - size, n_streams * n_batches * MIB)
        for stream in streams:
            answers = stream.finish()
            self.assertEqual(len(answers), n_batches)
            self.assertEqual({len(r.value) for a in answers for r in a.result.results}, {MIB})
        self.assert_flat(stall_and_vanish, 2)

    def test_clients_that_vanish_with_batches_under_way(self):
        epoch = self.place(b"k")
        batch = self.batch([operation(PUT, b"k", epoch, value=b"v" * 1000)] * 5)

        def vanish():
            streams = [self.stream() for _ in range(5)]
            for stream in streams:
                for _ in range(10):
                    stream.send(batch)
                stream.next()
            for stream in streams:
                stream.cancel()

        self.assert_flat(vanish, 3)


@unittest.skipIf(MISSING, MISSING)
class Ends(FleetCase):
    """What was answered holds, however the instance ends."""

    N_KEYS = 50

    def load(self, fleet, stream):
        """PUTs rising numbers, a batch for each, until the stream ends; returns the last number
        that was answered, how the stream ended, and the answers without a result."""
        with fleet.owner("a") as owner:
            cluster_id = owner.status().cluster_id
        epochs = {key: fleet.status(key).epoch for key in self.keys}
        incarnation = fleet.incarnations()["a"]
        self.acked, refused, room = -1, [], threading.Semaphore(32)
        ended = threading.Event()

        def send():
            i = 0
            while not ended.is_set():
                if not room.acquire(timeout=1):
                    continue
                stream.send(instance_pb.InstanceServicePipelineRequest(
                    batch_id=i, cluster_id=cluster_id, owner="a", incarnation=incarnation,
                    operations=[operation(PUT, key, epoch, value=b"%d" % i)
                                for key, epoch in epochs.items()]))
                i += 1

        sender = threading.Thread(target=send)
        sender.start()
        try:
            while True:
                answer = stream.next()
                failed = [r.error for r in answer.result.results if r.HasField("error")]
                if answer.HasField("error"):
                    failed.append(answer.error)
                refused += failed
                if not failed:
                    self.acked = answer.batch_id
                room.release()
        except (grpc.RpcError, StopIteration) as end:
            return end, refused
        finally:
            ended.set()
            sender.join()

    def run_until(self, end):
        """Loads an instance, lets `end` make an end of it, and looks at what is left."""
        fleet = self.fleet(instances="a")
        self.keys = [b"load:%d" % i for i in range(self.N_KEYS)]
        with fleet.session() as session:
            for key in self.keys:
                session.put(key, b"0")
            stream = Stream(fleet.addresses["a"])
            self.addCleanup(stream.cancel)
            result = []
            loader = threading.Thread(target=lambda: result.append(self.load(fleet, stream)))
            self.acked = -1
            loader.start()
            wait_until(lambda: self.acked >= 20, "the load is under way")
            end(fleet)
            loader.join()
            fleet.start_instance("a")
            for key in self.keys:
                self.assertGreaterEqual(int(session.read(key).key.value), self.acked)
        return result[0]

    def test_sigkill(self):
        end, refused = self.run_until(lambda fleet: fleet.kill("a"))
        self.assertIsInstance(end, grpc.RpcError)
        self.assertEqual(end.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(refused, [])

    def test_sigterm(self):
        """What is not done any more is refused, or the stream ends and says so."""
        end, refused = self.run_until(lambda fleet: self.assertEqual(fleet.stop("a"), 0))
        self.assertIsInstance(end, grpc.RpcError)
        self.assertEqual(end.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(api.routing_error(end)[0].reason, "DRAINING")
        for error in refused:
            self.assertEqual((error.routing.reason, error.routing.applied),
                             ("DRAINING", APPLIED_NO))


if __name__ == "__main__":
    tap.main()
