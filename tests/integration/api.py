"""A client of the public API from nothing but proto/: Python stubs are generated on import.

Raises unittest.SkipTest when the generator or the gRPC library is missing.
"""
import atexit
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import grpc
    import grpc_tools  # noqa: F401  (says what is missing before protoc does)
except ImportError as missing:
    raise unittest.SkipTest(f"python3 module {missing.name} is missing") from missing

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def _generate():
    out = tempfile.mkdtemp(prefix="redistinto-stubs-")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    files = [str(path.relative_to(PROTO)) for path in
             [*PROTO.glob("redistinto/v1/*.proto"), *PROTO.glob("google/rpc/*.proto")]]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}",
                    f"--python_out={out}", f"--grpc_python_out={out}", *files], check=True)
    # The generated packages have no __init__.py; "google" is shared with the protobuf library.
    import google
    google.__path__.append(os.path.join(out, "google"))
    sys.path.insert(0, out)


_generate()

# pylint: disable=wrong-import-position
from google.rpc import error_details_pb2, status_pb2  # noqa: E402
from redistinto.v1 import admin_pb2, admin_pb2_grpc  # noqa: E402
from redistinto.v1 import common_pb2  # noqa: E402
from redistinto.v1 import coordinator_pb2 as pb  # noqa: E402
from redistinto.v1 import coordinator_pb2_grpc  # noqa: E402
from redistinto.v1 import esi_pb2, esi_pb2_grpc  # noqa: E402
from redistinto.v1 import instance_pb2, instance_pb2_grpc  # noqa: E402
from redistinto.v1 import ownership_pb2, ownership_pb2_grpc  # noqa: E402

DONE = pb.STATEMENT_OUTCOME_DONE
WAITING = pb.STATEMENT_OUTCOME_WAITING
READY = pb.STATEMENT_OUTCOME_READY
DETAILS_KEY = "grpc-status-details-bin"


class StatementFailed(Exception):
    """An error inside the stream."""

    def __init__(self, error):
        super().__init__(f"{error.routing.reason}: {error.message}")
        self.error = error
        self.reason = error.routing.reason


def routing_error(failure):
    """The RoutingError of a failed unary call, with its Status; None without details."""
    for key, value in failure.trailing_metadata():
        if key == DETAILS_KEY:
            status = status_pb2.Status.FromString(value)
            for detail in status.details:
                routing = common_pb2.RoutingError()
                if detail.Unpack(routing):
                    return routing, status
    return None


class Session:
    """One session; statements run one at a time over one Execute stream."""

    def __init__(self, address, name="test"):
        self.channel_address = address
        self.channel = grpc.insecure_channel(address)
        self.stub = coordinator_pb2_grpc.CoordinatorServiceStub(self.channel)
        self.client_id, self.seq = os.urandom(16), 0
        self.id = self.stub.OpenSession(
            pb.OpenSessionRequest(name=name, request_id=self._next_id()), timeout=10).session_id
        self.requests = queue.SimpleQueue()
        self.answers = self.stub.Execute(iter(self.requests.get, None))

    def _next_id(self):
        self.seq += 1
        return common_pb2.RequestId(client_id=self.client_id, seq=self.seq)

    def run(self, timeout_ms=10000, **statement):
        """The result of one statement; raises StatementFailed."""
        return self.finish(self.begin(timeout_ms, **statement))

    def begin(self, timeout_ms=10000, **statement):
        """Sends a statement, for finish()."""
        request_id = self._next_id()
        self.requests.put(pb.ExecuteRequest(
            statement_id=request_id.seq, request_id=request_id, done_below=request_id.seq,
            session_id=self.id, timeout_ms=timeout_ms, **statement))
        return request_id.seq

    def finish(self, statement_id):
        """The result of the oldest statement that was sent; raises StatementFailed."""
        answer = next(self.answers)
        if answer.statement_id != statement_id:
            raise AssertionError("the answer is to another statement")
        if answer.WhichOneof("outcome") == "error":
            raise StatementFailed(answer.error)
        return answer.result

    def get(self, key):
        return self.run(get=pb.GetStatement(key=key))

    def set(self, key, value, token=0):
        return self.run(set=pb.SetStatement(key=key, value=value, lock_token=token))

    def store(self, key, token=0, last_set=None):
        return self.run(store=pb.StoreStatement(key=key, lock_token=token, last_set=last_set))

    def put(self, key, value, token=0, if_version=None):
        return self.run(put=pb.PutStatement(key=key, value=value, lock_token=token,
                                            if_version=if_version))

    def read(self, key):
        return self.run(read=pb.ReadStatement(key=key))

    def delete(self, key, token=0):
        return self.run(delete=pb.DeleteStatement(key=key, lock_token=token))

    def wait_turn(self, key):
        return self.run(await_turn=pb.AwaitStatement(key=key))

    def close(self):
        self.requests.put(None)
        self.stub.CloseSession(pb.CloseSessionRequest(session_id=self.id), timeout=10)
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
