"""An HTTP/2 client that a test drives frame by frame, to send what a gRPC library never would.

Nothing is sent or answered but what the test asks for: no window is opened, no PING or SETTINGS is
acknowledged, unless `Connection.exchange` reads. Raises unittest.SkipTest without python3-hpack.
"""
import socket
import struct
import time
import unittest

try:
    import hpack
except ImportError as missing:
    raise unittest.SkipTest("python3 module hpack is missing") from missing

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
ACK = END_STREAM = 1
END_HEADERS = 4
MAX_FRAME = 16384
INITIAL_WINDOW_SIZE = 4  # of SETTINGS


def frame(kind, flags, stream_id, payload=b""):
    """One frame, well-formed or not."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream_id) + payload


def message(payload):
    """A gRPC message as DATA carries it."""
    return b"\x00" + struct.pack(">I", len(payload)) + payload


class Closed(Exception):
    """The server has closed the connection."""


class Answer:
    """What came on one stream."""

    def __init__(self):
        self.headers, self.data, self.ended = {}, b"", False

    @property
    def status(self):
        """The gRPC status; None when the stream ended without one."""
        status = self.headers.get("grpc-status")
        return None if status is None else int(status)


class Connection:
    """One connection. `window` is what the server may send on each stream before it is read."""

    def __init__(self, address, window=65535, timeout_s=30, starts=True):
        host, port = address.rsplit(":", 1)
        self.window, self.timeout_s = window, timeout_s
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.received = bytearray()
        self.answers = {}
        self.next_id = 1
        if starts:
            self.send(PREFACE + frame(SETTINGS, 0, 0,
                                      struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    # ---- requests ----

    def request_headers(self, path, metadata=()):
        return self.encoder.encode([
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
            ("content-type", "application/grpc"), ("te", "trailers"), *metadata], huffman=False)

    def open_frames(self, path, metadata=(), flags=END_HEADERS):
        """(stream id, frames) of a call's beginning, not yet sent."""
        stream_id, self.next_id = self.next_id, self.next_id + 2
        self.answers[stream_id] = Answer()
        block = self.request_headers(path, metadata)
        parts = [block[i:i + MAX_FRAME] for i in range(0, len(block), MAX_FRAME)]
        frames = [frame(HEADERS if i == 0 else CONTINUATION,
                        flags if i == len(parts) - 1 else flags & ~END_HEADERS, stream_id, part)
                  for i, part in enumerate(parts)]
        return stream_id, b"".join(frames)

    def open(self, path, metadata=(), flags=END_HEADERS):
        stream_id, frames = self.open_frames(path, metadata, flags)
        self.send(frames)
        return stream_id

    def begin(self, path, payload, metadata=(), ends=True):
        """A call with one message, which must fit into one frame; nothing is read."""
        stream_id, frames = self.open_frames(path, metadata)
        self.send(frames + frame(DATA, END_STREAM if ends else 0, stream_id, message(payload)))
        return stream_id

    def send_message(self, stream_id, payload):
        """One more message of a stream."""
        self.send(frame(DATA, 0, stream_id, message(payload)))

    def call(self, path, payload=b"", metadata=()):
        """One unary call to its end."""
        return self.finish(self.begin(path, payload, metadata))

    # ---- what comes ----

    def finish(self, stream_id):
        """Reads until the stream has ended, which alone gets a window if there is none."""
        answer = self.answers[stream_id]
        if self.window == 0:
            self.send(frame(WINDOW_UPDATE, 0, stream_id, struct.pack(">I", 1 << 20)))
        self.exchange_until(lambda: answer.ended, f"stream {stream_id} ends")
        return self.answers.pop(stream_id)

    def exchange_until(self, condition, what):
        """PINGs of a server that says nothing else count for nothing."""
        end = time.monotonic() + self.timeout_s
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {self.timeout_s} s: {what}")
            self.exchange()

    def exchange(self):
        """Reads one frame and answers it as a client should."""
        kind, flags, stream_id, payload = self.read_frame()
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == DATA and payload:
            grant = struct.pack(">I", len(payload))
            self.send(frame(WINDOW_UPDATE, 0, 0, grant) +
                      frame(WINDOW_UPDATE, 0, stream_id, grant))
        if stream_id in self.answers:
            self._take(self.answers[stream_id], kind, flags, payload)
        elif kind == HEADERS:
            self.decoder.decode(payload)  # keeps the table of the connection right

    def _take(self, answer, kind, flags, payload):
        if kind == HEADERS:
            answer.headers.update(self.decoder.decode(payload))
        elif kind == DATA:
            answer.data += payload
        elif kind == RST_STREAM:
            answer.ended = True
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            answer.ended = True

    def read_frame(self):
        header = self._read(9)
        size = int.from_bytes(header[:3], "big")
        return (header[3], header[4], int.from_bytes(header[5:9], "big") & 0x7FFFFFFF,
                self._read(size))

    def _read(self, size):
        while len(self.received) < size:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError as error:
                raise Closed from error
            if not data:
                raise Closed
            self.received += data
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken
