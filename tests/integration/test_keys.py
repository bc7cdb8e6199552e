"""The verbs of one key and of sessions, on a cluster: results, what stays locked, exit codes."""
import signal
import subprocess
import tempfile
import time
import unittest

import tap
from cluster import DEADLINE_S, Cluster, Service, binary, run, wait_until

ENTRIES, ENTRY_SIZE = 20, 10


class KeysCase(unittest.TestCase):
    """Two instances of 20 entries of 10 bytes."""

    OPTIONS = []

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(
            Cluster("--entries", ENTRIES, "--entry-size", ENTRY_SIZE, *cls.OPTIONS, instances=2))

    def cli(self, *arguments, **keywords):
        return self.cluster.cli(*arguments, **keywords)

    def ok(self, *arguments):
        result = self.cli(*arguments)
        self.assertEqual(result.code, 0, (arguments, result.out, result.err))
        return result

    def fails(self, code, reason, *arguments):
        """As text and as JSON."""
        result = self.cli(*arguments)
        self.assertEqual((result.code, result.out), (code, b""), (arguments, result.err))
        self.assertIn(reason.encode(), result.err, arguments)
        result = self.cli(*arguments, "-o", "json")
        self.assertEqual((result.code, result.err), (code, b""), (arguments, result.out))
        self.assertEqual(list(result.json()), ["error"])
        self.assertIn(reason, (result.json()["error"]["reason"], result.json()["error"]["code"]))
        return result.json()["error"]

    def start(self, *arguments):
        """A command that goes on; stopped after the test."""
        process = subprocess.Popen(
            [binary("redistinto"), "--coordinator", self.cluster.coordinator, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def open_session(self, name="test", *options):
        """The running command, and the id."""
        process = self.start("session", "open", "--name", name, *options)
        return process, process.stdout.readline().decode().strip()

    def holder(self, key):
        return self.ok("status", key, "-o", "json").json()["holder"]

    def wait_free(self, key):
        """Well before the lease of the session that held it would have run out."""
        wait_until(lambda: self.holder(key) is None, f"{key} is free", deadline_s=5)

    def waiters(self, key):
        return self.ok("status", key, "-o", "json").json()["waiters"]


class Keys(KeysCase):
    """Each verb in a session of its own."""

    def test_course_of_a_key(self):
        self.assertRegex(self.ok("set", "course", "one").text(),
                         r"^version=\d+\.\d+\.\d+ stored=no owner=instance-\d epoch=\d+\n$")
        self.assertEqual(self.ok("read", "course").out, b"one")
        self.assertRegex(self.ok("store", "course").text(), " stored=yes ")
        self.assertRegex(self.ok("put", "course", "two").text(), " stored=yes ")
        self.assertEqual(self.ok("get", "course").out, b"two")
        self.wait_free("course")
        self.ok("del", "course")
        self.fails(3, "KEY_NOT_IDENTIFIED", "read", "course")
        self.fails(3, "KEY_NOT_IDENTIFIED", "get", "course")

    def test_as_json(self):
        answer = self.ok("set", "json", "caña", "-o", "json").json()
        self.assertEqual((answer["statement"], answer["outcome"], answer["key"]),
                         ("SET", "ok", "json"))
        self.assertEqual(answer["stored"], False)
        answer = self.ok("get", "json", "-o", "json").json()
        self.assertEqual(answer["value"], "caña")
        self.assertIsNone(answer["lock_token"])
        self.assertEqual(answer["version"]["epoch"], answer["epoch"])
        self.assertEqual(self.ok("store", "json", "-o", "json").json()["stored"], True)
        self.assertEqual(self.ok("del", "json", "-o", "json").json()["version"], None)

    def test_values_from_elsewhere(self):
        path = self.cluster.directory / "value"
        path.write_bytes(b"\x00\xff\n")
        self.ok("put", "file", "--value-file", path)
        self.assertEqual(self.ok("read", "file").out, b"\x00\xff\n")
        for option in (["-"], ["--value-file", "-"]):
            with open(path, "rb") as stdin:
                done = subprocess.run(
                    [binary("redistinto"), "--coordinator", self.cluster.coordinator, "put",
                     "stdin", *option], stdin=stdin, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.ok("read", "stdin").out, b"\x00\xff\n")
        self.ok("put", "empty", "")
        self.assertEqual(self.ok("read", "empty").out, b"")

    def test_escaped_keys(self):
        """What keys shows can be typed."""
        self.ok("put", "-e", r"odd\x00\\\xff", r"a\x0a")
        shown = self.ok("keys", "--prefix", "odd").text().splitlines()[1].split()[0]
        self.assertEqual(shown, r"odd\x00\\\xff")
        self.assertEqual(self.ok("read", "-e", shown).out, b"a\n")
        self.fails(2, "INVALID_ARGUMENT", "read", "-e", "a\\")

    def test_versions(self):
        first = self.ok("put", "version", "1").text().split()[0].removeprefix("version=")
        self.fails(4, "VERSION_MISMATCH", "put", "version", "2", "--if-version", "0.0.0")
        self.ok("put", "version", "2", "--if-version", first)
        self.fails(4, "VERSION_MISMATCH", "del", "version", "--if-version", first)
        self.fails(2, "INVALID_ARGUMENT", "put", "version", "3", "--if-version", "1.2")

    def test_usage(self):
        for arguments in (["get"], ["set", "k"], ["put", "k", "v", "w"], ["store"],
                          ["read", "a", "b"], ["del"], ["set", "k", "v", "--session", "x"],
                          ["set", "k", "v", "--value-file", "/dev/null"],
                          ["session"], ["session", "list"], ["session", "close"],
                          ["session", "close", "x"], ["session", "open", "x"],
                          ["session", "open", "--name", "a b"]):
            self.fails(2, "INVALID_ARGUMENT", *arguments)
        self.fails(2, "KEY_TOO_LONG", "put", "k" * 256, "v")

    def test_unknown_keys(self):
        for verb in ("get", "read", "store", "del"):
            self.fails(3, "KEY_NOT_IDENTIFIED", verb, "nowhere")

    def test_more_than_fits(self):
        self.ok("put", "wide", "x" * (ENTRY_SIZE * 10))
        self.fails(7, "RESOURCE_EXHAUSTED", "put", "wide", "x" * (ENTRY_SIZE * ENTRIES + 1))
        self.assertEqual(self.ok("read", "wide").out, b"x" * (ENTRY_SIZE * 10))

    def test_no_coordinator(self):
        for arguments in (["get", "k"], ["set", "k", "v"], ["store", "k"], ["put", "k", "v"],
                          ["del", "k"], ["session", "open"],
                          ["session", "close", "1" * 32]):
            result = run("redistinto", "--coordinator", "127.0.0.1:1", "--timeout", "1s",
                         "-o", "json", *arguments)
            self.assertEqual((result.code, result.err), (5, b""), arguments)
            self.assertEqual(result.json()["error"]["applied"], "NO", arguments)


class Sessions(KeysCase):
    """Sessions that stay, and locks in them."""

    def test_lock_that_stays(self):
        _, session = self.open_session("worker")
        result = self.ok("get", "stays", "--session", session)
        self.assertEqual(result.out, b"")
        self.assertRegex(result.err, rb"^redistinto: get: locked .* lock_token=\d+\n$")
        self.assertEqual(self.holder("stays"), "worker")
        self.fails(4, "KEY_NOT_LOCKED", "get", "stays", "--no-wait", "--session",
                   self.open_session("other")[1])
        self.ok("set", "stays", "v", "--session", session)
        self.ok("store", "stays", "--session", session)
        self.assertIsNone(self.holder("stays"))

    def test_session_from_the_environment(self):
        _, session = self.open_session("environment")
        result = self.cli("get", "environment", env={"REDISTINTO_SESSION": session})
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(self.holder("environment"), "environment")

    def test_json(self):
        process = self.start("session", "open", "-o", "json")
        line = process.stdout.readline()
        self.assertRegex(line, rb'^\{"session_id":"[0-9a-f]{32}","name":"redistinto-session",'
                               rb'"lease_ms":\d+\}\n$')
        session = line.decode().split('"')[3]
        self.assertEqual(self.ok("session", "close", session, "-o", "json").json(),
                         {"session_id": session})

    def test_closed_by_others(self):
        """Its locks are free at once, and the one who kept it says so."""
        process, session = self.open_session("closed")
        self.ok("get", "closed", "--session", session)
        self.ok("session", "close", session)
        self.wait_free("closed")
        out, err = process.communicate(timeout=40)
        self.assertEqual((process.returncode, out), (4, b""))
        self.assertIn(b"(FAILED_PRECONDITION SESSION_UNKNOWN)", err)
        self.ok("session", "close", session)
        self.fails(4, "SESSION_UNKNOWN", "get", "closed", "--session", session)

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, session = self.open_session("interrupted")
            self.ok("get", "interrupted", "--session", session)
            process.send_signal(number)
            out, err = process.communicate(timeout=40)
            self.assertEqual((process.returncode, out, err), (0, b"", b""))
            self.wait_free("interrupted")

    def test_ttl(self):
        process, session = self.open_session("ttl", "--ttl", "1ms")
        self.assertEqual(process.wait(timeout=40), 0)
        self.fails(4, "SESSION_UNKNOWN", "get", "ttl", "--session", session)

    def test_waiting(self):
        """Says for whom, and goes on when the lock is free."""
        _, session = self.open_session("first")
        self.ok("get", "turn", "--session", session)
        waiting = self.start("put", "turn", "second", "--timeout", "1m")
        self.assertEqual(waiting.stderr.readline(),
                         b"redistinto: put: waiting for the lock that 'first' holds\n")
        self.ok("put", "turn", "first", "--session", session)
        self.assertEqual(waiting.wait(timeout=40), 0)
        self.assertEqual(self.ok("read", "turn").out, b"second")

    def test_waiting_too_long(self):
        _, session = self.open_session("long")
        self.ok("get", "long", "--session", session)
        result = self.cli("get", "long", "--timeout", "300ms", "-o", "json")
        self.assertEqual(result.code, 5, result.out)
        result = self.cli("put", "long", "v", "--timeout", "300ms", "-o", "json")
        self.assertEqual((result.code, result.json()["error"]["applied"]), (5, "NO"))
        self.assertEqual(self.waiters("long"), [])

    def test_interrupted_while_waiting(self):
        """Nothing stays, neither a place in the queue nor, later, the lock."""
        _, session = self.open_session("holds")
        self.ok("get", "queue", "--session", session)
        for number in (signal.SIGINT, signal.SIGTERM):
            waiting = self.start("set", "queue", "v", "--timeout", "1m")
            self.assertIn(b"waiting for", waiting.stderr.readline())
            self.assertEqual(self.waiters("queue"), ["redistinto-set"])
            waiting.send_signal(number)
            self.assertEqual(waiting.wait(timeout=40), 130)
            self.assertEqual(self.waiters("queue"), [])
        self.ok("session", "close", session)
        self.wait_free("queue")


class ShortLease(unittest.TestCase):
    """Sessions of one second, unless somebody keeps them alive."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.coordinator = self.service("coordinator", "--session-lease", "1s", "--lease",
                                        "1s").address

    def service(self, name, *options):
        """Killed after the test."""
        service = Service(f"redistinto-{name}", "--listen", "127.0.0.1:0", "--data-dir",
                          f"{self.directory}/{name}", *options, directory=self.directory)
        self.addCleanup(service.kill)
        return service.wait_ready()

    def instance(self):
        return self.service("instance", "--name", "a", "--coordinator", self.coordinator)

    def start(self, *arguments):
        process = subprocess.Popen(
            [binary("redistinto"), "--coordinator", self.coordinator, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def holder(self):
        return run("redistinto", "--coordinator", self.coordinator, "status", "k", "-o",
                   "json").json()["holder"]

    def lock(self, session):
        result = run("redistinto", "--coordinator", self.coordinator, "get", "k", "--session",
                     session)
        self.assertEqual(result.code, 0, result.err)
        self.assertIsNotNone(self.holder())

    def lose(self, process):
        """Stopped until the coordinator has ended its session."""
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.holder() is None, "the lock is free")
        process.send_signal(signal.SIGCONT)

    def test_kept_alive(self):
        """For several leases: what ends it is --ttl."""
        process = self.start("session", "open", "--ttl", "4s")
        self.lock(process.stdout.readline().decode().strip())
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, out, err), (0, b"", b""))
        wait_until(lambda: self.holder() is None, "the lock is free")

    def state(self):
        result = run("redistinto", "--coordinator", self.coordinator, "instances", "-o", "json")
        return result.json()["instances"][0]["state"]

    def test_of_a_verb_that_waits_for_an_owner(self):
        owner = self.instance()
        put = ["redistinto", "--coordinator", self.coordinator, "put", "k"]
        self.assertEqual(run(*put, "v").code, 0)
        owner.kill()
        wait_until(lambda: self.state() == "dead", "the owner is dead")
        process = self.start("put", "k", "w", "--timeout", "30s")
        end = time.monotonic() + 2.5
        wait_until(lambda: time.monotonic() > end, "a session would be over that nobody renews")
        self.instance()
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, err), (0, b""), out)

    def test_lost(self):
        process = self.start("session", "open")
        self.lock(process.stdout.readline().decode().strip())
        self.lose(process)
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, out), (4, b""), err)
        self.assertRegex(err, rb"^redistinto: session: .* SESSION_\w+\)\n$")

    def test_lost_by_a_shell(self):
        """Nothing runs in a session that is over, and nothing after that."""
        process = self.start("shell", "-o", "json")
        process.stdin.write(b"GET k\n")
        process.stdin.flush()
        self.assertIn(b'"outcome":"ok"', process.stdout.readline())
        self.lose(process)
        self.assertIn(b"the session was lost: ", process.stderr.readline())
        out, err = process.communicate(b"PUT k v\n", timeout=DEADLINE_S)
        self.assertEqual((process.returncode, out, err), (1, b"", b""))


class ClassicSessions(KeysCase):
    """A lock for every write."""

    OPTIONS = ["--profile", "classic"]

    def test_each_verb_locks(self):
        self.ok("set", "k", "v")
        self.wait_free("k")
        self.ok("store", "k")
        self.ok("put", "k", "w")
        self.ok("del", "k")

    def test_not_locked(self):
        _, session = self.open_session()
        self.ok("put", "k2", "v")
        self.fails(4, "KEY_NOT_LOCKED", "set", "k2", "w", "--session", session)


class Failures(KeysCase):
    """An owner that does not answer."""

    OPTIONS = ["--lease", "1m"]

    def test_unknown_outcome_and_timeout(self):
        self.ok("put", "stuck", "v")
        owner = self.ok("status", "stuck", "-o", "json").json()["owner"]
        self.cluster.pause(owner)
        try:
            result = self.cli("put", "stuck", "w", "--timeout", "500ms", "-o", "json")
            self.assertEqual((result.code, result.json()["error"]["applied"]), (8, "MAYBE"))
            result = self.cli("read", "stuck", "--timeout", "500ms")
            self.assertEqual((result.code, result.out), (5, b""), result.err)
        finally:
            self.cluster.resume(owner)


if __name__ == "__main__":
    tap.main()
