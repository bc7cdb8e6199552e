"""Clients that write through Execute while something fails, and what they may claim afterwards."""
import os
import threading
import time

import grpc

import api
from fleet import RECONNECT_SOON, common, pb


class Writer(threading.Thread):
    """PUTs 1, 2, 3 … to a key of its own, each until it is answered, with one request id."""

    def __init__(self, address, key):
        super().__init__(daemon=True)
        self.address, self.key = address, key
        self.client_id, self.seq = os.urandom(16), 0
        self.acked = 0          # the highest number whose OK came
        self.asked = 0          # the highest number that was sent
        self.epochs, self.owners, self.versions = set(), set(), []
        self.refused = []       # final errors: none is expected
        self.ended = threading.Event()

    def run(self):
        with grpc.insecure_channel(self.address, RECONNECT_SOON) as channel:
            stub = api.coordinator_pb2_grpc.CoordinatorServiceStub(channel)
            session_id = self._open(stub)
            while not self.ended.is_set():
                self.asked += 1
                self._until_answered(stub, session_id, str(self.asked).encode())

    def stop(self):
        self.ended.set()
        self.join(timeout=30)
        assert not self.is_alive()

    def _next_id(self):
        self.seq += 1
        return common.RequestId(client_id=self.client_id, seq=self.seq)

    def _open(self, stub):
        return stub.OpenSession(pb.OpenSessionRequest(name="writer", request_id=self._next_id()),
                                timeout=10).session_id

    def _until_answered(self, stub, session_id, value):
        request_id = self._next_id()
        request = pb.ExecuteRequest(
            statement_id=request_id.seq, request_id=request_id, done_below=request_id.seq,
            session_id=session_id, timeout_ms=2000,
            put=pb.PutStatement(key=self.key, value=value))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            answer = self._once(stub, request)
            if answer is not None and answer.WhichOneof("outcome") == "result":
                self._note(answer.result)
                return
            if answer is not None and answer.error.code not in TRANSIENT:
                self.refused.append(answer.error)
                return
            time.sleep(0.02)  # the back-off that docs/errors.md asks of a client
        self.refused.append("no answer within 30 s")

    @staticmethod
    def _once(stub, request):
        try:
            return list(stub.Execute(iter([request]), timeout=5))[-1]
        except (grpc.RpcError, IndexError):
            return None

    def _note(self, result):
        self.acked = self.asked
        self.epochs.add(result.epoch)
        self.versions.append((result.key.version.epoch, result.key.version.incarnation,
                              result.key.version.seq))
        if result.instance:  # a replayed answer names no instance
            self.owners.add(result.instance)


TRANSIENT = {code.value[0] for code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED,
                                        grpc.StatusCode.DEADLINE_EXCEEDED,
                                        grpc.StatusCode.CANCELLED)}
