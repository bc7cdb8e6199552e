"""Binaries whose standard descriptors are closed when they start: none of their own files becomes
one of them."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

import tap
from cluster import DEADLINE_S, binary

CLOSED = {"<&-": [0], ">&-": [1], "2>&-": [2], "<&- >&- 2>&-": [0, 1, 2]}


class ClosedDescriptors(unittest.TestCase):
    """Each binary is looked at when it has connected, or serves."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE_S)
        self.addCleanup(self.listener.close)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    @contextlib.contextmanager
    def started(self, closed, program, *arguments, pass_fds=()):
        process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {closed}', "sh", binary(program), *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=pass_fds)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def assert_taken(self, process, closed):
        """By a file that can only be read: results that go nowhere are an error."""
        for number in CLOSED[closed]:
            self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{number}"), "/dev/null",
                             (closed, number))
            info = pathlib.Path(f"/proc/{process.pid}/fdinfo/{number}").read_text("ascii")
            flags = int(re.search(r"flags:\s*(\d+)", info)[1], 8)
            self.assertEqual(flags & os.O_ACCMODE, os.O_RDONLY, (closed, number))

    def assert_client(self, program, *arguments):
        for closed in CLOSED:
            with self.started(closed, program, "--coordinator", self.address,
                              *arguments) as process:
                self.listener.accept()[0].close()
                self.assert_taken(process, closed)

    def test_redistinto(self):
        self.assert_client("redistinto", "read", "k")

    def test_esi(self):
        script = self.directory / "script.esi"
        script.write_text("GET k\n", encoding="utf-8")
        for closed in CLOSED:
            with self.started(closed, "redistinto-esi", "run", "--coordinator", self.address,
                              script) as process:
                self.listener.accept()[0].close()
                self.assert_taken(process, closed)

    def test_instance(self):
        self.assert_client("redistinto-instance", "--name", "a", "--listen", "127.0.0.1:0",
                           "--data-dir", self.directory / "a")

    def test_coordinator(self):
        for closed in CLOSED:
            read_end, write_end = os.pipe()
            with self.started(closed, "redistinto-coordinator", "--listen", "127.0.0.1:0",
                              "--data-dir", self.directory / "coordinator", "--ready-fd",
                              write_end, pass_fds=[write_end]) as process:
                os.close(write_end)
                with open(read_end, encoding="ascii") as ready:
                    self.assertTrue(ready.readline().startswith("ready "), closed)
                self.assert_taken(process, closed)


if __name__ == "__main__":
    tap.main()
