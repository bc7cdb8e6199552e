"""Clients that take and do not give back: thousands of streams, answers that nobody reads,
connections that say nothing or only a part. Others are served meanwhile, memory is bounded, and it
is the offender who ends.
"""
import contextlib
import os
import socket
import unittest

import tap
from cluster import wait_until

try:
    from fleet import instance_pb, pb
    from http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, MAX_FRAME, PREFACE,
                       RST_STREAM, SETTINGS, Answer, Closed, Connection, frame, message)
    from one_fleet_case import MIB, OneFleetCase, open_files, resident_bytes
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, OneFleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, OneFleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

MAX_STREAMS = 10_000
EXHAUSTED = 8
BACKLOG_BYTES = 256 * MIB
STREAMS = {"coordinator": "/redistinto.v1.CoordinatorService/Execute",
           "a": "/redistinto.v1.InstanceService/Pipeline"}
UNARY = {"coordinator": "/redistinto.v1.AdminService/ListInstances",
         "a": "/redistinto.v1.InstanceService/Status"}


@unittest.skipIf(MISSING, MISSING)
class Flood(OneFleetCase):
    """Real sockets against both processes."""

    def connect(self, name, **keywords):
        connection = Connection(self.addresses()[name], **keywords)
        self.addCleanup(connection.close)
        return connection

    def pid(self, name):
        return self.cluster.services[name].pid

    def wait_files(self, before):
        for name, n in before.items():
            wait_until(lambda n=n, name=name: open_files(self.pid(name)) <= n + 2,
                       f"{name} has closed what came and went")

    def files(self):
        return {name: open_files(self.pid(name)) for name in UNARY}

    # ---- many streams ----

    def fill(self, name):
        """Opens 500 streams too many; how many are open then, those of others aside."""
        connection = self.connect(name)
        for _ in range(0, MAX_STREAMS + 500, 500):
            batch = [connection.open_frames(STREAMS[name]) for _ in range(500)]
            connection.send(b"".join(frames for _, frames in batch))
        streams = dict(connection.answers)
        # Who is taken or refused is decided in the order of opening.
        last = max(streams)
        connection.exchange_until(lambda: streams[last].ended, "the last stream is refused")
        connection.exchange_until(
            lambda: sum(not stream.ended for stream in streams.values()) <= MAX_STREAMS,
            f"{MAX_STREAMS} streams are left")
        ended = [stream for stream in streams.values() if stream.ended]
        self.assertEqual({stream.status for stream in ended}, {EXHAUSTED})
        return connection, len(streams) - len(ended)

    def test_streams_up_to_10_000_and_one_more(self):
        for name in STREAMS:
            most = 0
            for round_ in range(4):
                connection, n = self.fill(name)
                # Sessions and instances have streams of their own among the 10,000.
                self.assertLessEqual(n, MAX_STREAMS)
                self.assertGreater(n, MAX_STREAMS - 20)
                self.assertEqual(connection.call(UNARY[name]).status, 0)
                size = resident_bytes(self.pid(name))
                connection.close()
                if round_ < 2:
                    most = max(most, size)
                else:
                    self.assertLess(size, most + 16 * MIB, name)
            wait_until(lambda n=name: self.opens_a_stream(n), f"{name} takes streams again")
        self.assert_serves()

    def opens_a_stream(self, name):
        with contextlib.closing(Connection(self.addresses()[name])) as connection:
            stream_id = connection.open(STREAMS[name])
            connection.call(UNARY[name])
            return not connection.answers[stream_id].ended

    def test_streams_that_come_and_go(self):
        def churn():
            for name in STREAMS:
                with self.connect(name) as connection:
                    for _ in range(500):
                        connection.open(STREAMS[name])
                    connection.call(UNARY[name])

        self.assert_flat(churn, 8)

    # ---- what is not read ----

    def test_answers_that_nobody_reads(self):
        """More values than the server may hold are asked for, by clients that open no window."""
        self.client.put(b"big", os.urandom(MIB))
        request = instance_pb.InstanceServiceReadRequest(
            header=self.header(b"big")).SerializeToString()
        before = self.files()
        connections = []
        for _ in range(8):
            connection = self.connect("a", window=0)
            for _ in range(100):
                connection.begin("/redistinto.v1.InstanceService/Read", request)
            connections.append(connection)
        # Who reads is served all the time, and by that what was sent before has been worked on.
        for _ in range(20):
            self.assertEqual(len(self.client.read(b"big").key.value), MIB)
        self.assertLess(resident_bytes(self.pid("a")), BACKLOG_BYTES + 256 * MIB)
        connection = self.connect("a")
        self.assertEqual(connection.call(UNARY["a"]).status, 0)
        for connection in connections:
            connection.close()
        self.wait_files(before)
        self.client.delete(b"big")
        self.assert_serves()

    def test_statements_whose_answers_nobody_reads(self):
        """One stream: its queue is bounded, so it ends; memory is what it was before."""
        self.client.put(b"big", os.urandom(MIB))
        request = pb.ExecuteRequest(statement_id=1, session_id=self.client.id,
                                    read=pb.ReadStatement(key=b"big")).SerializeToString()

        def ask_and_leave():
            connection = self.connect("coordinator", window=0)
            stream_id = connection.begin(STREAMS["coordinator"], request, ends=False)
            with contextlib.suppress(Closed):
                for _ in range(50):
                    connection.send_message(stream_id, request)
            self.assertEqual(len(self.client.read(b"big").key.value), MIB)
            connection.close()

        self.assert_flat(ask_and_leave, 5)
        self.client.delete(b"big")

    def test_batches_whose_results_nobody_reads(self):
        """The instance stops reading the stream, so that its client stops too."""
        self.client.put(b"big", os.urandom(MIB))
        operation = instance_pb.PipelineOperation(
            kind=instance_pb.PIPELINE_OPERATION_KIND_READ, key=b"big",
            epoch=self.cluster.status(b"big").epoch)
        request = instance_pb.InstanceServicePipelineRequest(
            batch_id=1, cluster_id=self.cluster_id, owner="a", operations=[operation] * 10,
            incarnation=self.cluster.incarnations()["a"]).SerializeToString()

        def ask_and_leave():
            connection = self.connect("a", window=0)
            stream_id = connection.begin(STREAMS["a"], request, ends=False)
            for _ in range(80):
                connection.send_message(stream_id, request)
            self.assertEqual(connection.call(UNARY["a"]).status, 0)
            connection.close()

        self.assert_flat(ask_and_leave, 10)
        self.client.delete(b"big")

    # ---- what is not sent ----

    def test_connections_that_say_nothing(self):
        """200 each: idle, after the preface, amid the headers, amid a message."""
        before = self.files()
        for name in UNARY:
            connections = []
            for i in range(200):
                connection = self.connect(name, starts=i % 4 != 0)
                if i % 4 == 2:
                    block = connection.request_headers(UNARY[name])
                    connection.send(frame(HEADERS, 0, 1, block[:10]))
                elif i % 4 == 3:
                    connection.begin(UNARY[name], b"x" * 10, ends=False)
                connections.append(connection)
            self.assert_serves()
            for connection in connections:
                connection.close()
        self.wait_files(before)
        self.assert_flat(lambda: None, 1)

    def test_headers_one_byte_at_a_time(self):
        for name in UNARY:
            slow = self.connect(name)
            stream_id, frames = slow.open_frames(UNARY[name])
            for byte in frames:
                slow.send(bytes([byte]))
            self.assert_serves()
            slow.send(frame(DATA, END_STREAM, stream_id, message(b"")))
            self.assertEqual(slow.finish(stream_id).status, 0)

    def test_headers_in_many_frames(self):
        """1 MiB of them in CONTINUATION after CONTINUATION: each is below the limit, all are not.
        Others send as much and neither end their headers nor the connection in good order."""
        literal = b"\x00\x01x\x7f\x81\x7e" + b"v" * 16256

        def send_headers():
            for name in UNARY:
                with self.connect(name) as connection, self.connect(name) as endless:
                    stream_id, opened = connection.open_frames(UNARY[name], flags=0)
                    _, never_ended = endless.open_frames(UNARY[name], flags=0)
                    more = frame(CONTINUATION, 0, stream_id, literal) * 64
                    endless.send(never_ended + more)
                    connection.send(opened + more + frame(CONTINUATION, END_HEADERS, stream_id) +
                                    frame(DATA, END_STREAM, stream_id, message(b"")))
                    self.assertEqual(connection.finish(stream_id).status, EXHAUSTED)
                    self.assertEqual(connection.call(UNARY[name]).status, 0)

        self.assert_flat(send_headers, 10)

    def test_headers_that_core_reads_itself(self):
        """Wrong ones, alone and before others that are small in the frame and 6 MB when read."""
        def ask(name, wrong, n):
            with self.connect(name) as connection:
                right = {":method": "POST", ":scheme": "http", ":path": UNARY[name],
                         ":authority": "x", "content-type": "application/grpc", "te": "trailers"}
                block = connection.encoder.encode(
                    [*(right | {wrong: "?"}).items(), *[("x", "v" * 3000)] * n], huffman=False)
                self.assertLess(len(block), MAX_FRAME)
                answer = connection.answers[1] = Answer()
                with contextlib.suppress(Closed):
                    connection.send(frame(HEADERS, END_HEADERS, 1, block) +
                                    frame(DATA, END_STREAM, 1, message(b"")))
                    connection.exchange_until(lambda: answer.ended, "the call ends")

        def ask_all():
            for name in UNARY:
                for wrong in (":scheme", "te", "content-type", "grpc-timeout", "grpc-encoding",
                              "grpclb_client_stats", "x-bin"):
                    for n in (0, 2000):
                        ask(name, wrong, n)

        self.assert_flat(ask_all, 5)

    def test_bytes_of_other_protocols(self):
        hello = bytes.fromhex("16030100c8010000c40303") + os.urandom(194)
        payloads = [hello, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n",
                    b"*1\r\n$4\r\nPING\r\n", os.urandom(4096),
                    PREFACE + os.urandom(4096), PREFACE + frame(SETTINGS, 0, 0, b"\x00" * 7),
                    PREFACE + frame(SETTINGS, 0, 0) + frame(CONTINUATION, 0, 1, b"x")]

        def send_all():
            for address in self.addresses().values():
                host, port = address.rsplit(":", 1)
                for payload in payloads:
                    with socket.create_connection((host, int(port)), timeout=20) as connection:
                        connection.sendall(payload)
                        with contextlib.suppress(ConnectionResetError):
                            while connection.recv(65536):
                                pass

        before = self.files()
        self.assert_flat(send_all, 20)
        self.wait_files(before)

    def test_resets_as_fast_as_they_go(self):
        """Streams that are opened and cancelled at once."""
        def reset():
            for name in UNARY:
                with self.connect(name) as connection:
                    for _ in range(20):
                        frames = b""
                        for _ in range(100):
                            stream_id, opened = connection.open_frames(UNARY[name])
                            frames += opened + frame(RST_STREAM, 0, stream_id, b"\x00\x00\x00\x08")
                        connection.send(frames)
                        self.assertEqual(connection.call(UNARY[name]).status, 0)

        self.assert_flat(reset, 5)


if __name__ == "__main__":
    tap.main()
