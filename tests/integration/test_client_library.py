"""The C client library: the example programs against real clusters, and built by somebody else."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import tap
from cluster import BUILD, ROOT, Cluster, binary, run, wait_until

STATEMENTS, FILL = "examples/example-statements", "examples/example-fill"
LONG_LEASE = ("--lease", "30s")  # outlives a coordinator that is paused
SHORT_MS = 1000


def outcome(result):
    return result.split()[0]


class Statements:
    """A running example-statements: one client with whatever it remembers and holds."""

    def __init__(self, address, timeout_ms=30000, program=None):
        self.process = subprocess.Popen(
            [program or binary(STATEMENTS), address, str(timeout_ms)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def start(self, *statements):
        """Sends them as one batch, for results()."""
        self.process.stdin.write("\n".join(statements) + "\n\n")
        self.process.stdin.flush()

    def results(self, n):
        """The next n results, in order; the text of a failure is for people."""
        lines = [self.process.stdout.readline().removesuffix("\n") for _ in range(n)]
        return [line if line.startswith("ok") else " ".join(line.split()[:2]) for line in lines]

    def batch(self, *statements):
        self.start(*statements)
        return self.results(len(statements))

    def run(self, statement):
        return self.batch(statement)[0]

    def end(self):
        """Closes the client; the exit status."""
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.end()


class Commands(unittest.TestCase):
    def test_wrong_usage(self):
        self.assertEqual(run(STATEMENTS).code, 2)
        self.assertEqual(run(STATEMENTS, "x" * 256).code, 2)
        for arguments in ((), ("127.0.0.1:2", 1, 0, 1), ("127.0.0.1:2", 1, 1, 0)):
            self.assertEqual(run(FILL, *arguments).code, 2)

    def test_nobody_there(self):
        with tempfile.TemporaryDirectory() as directory:
            with Statements(f"unix:{directory}/nobody") as client:
                self.assertEqual(client.batch("PUT k v", "READ k"), ["failed NONE"] * 2)
                self.assertEqual(client.end(), 1)


class WithCluster(unittest.TestCase):
    """Three instances; nothing fails."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())

    def client(self, *arguments, **keywords):
        client = Statements(self.cluster.coordinator, *arguments, **keywords)
        self.addCleanup(client.__exit__)
        return client

    def status(self, key):
        return self.cluster.cli("status", key, "-o", "json").json()

    def test_every_operation(self):
        client = self.client()
        for statement, result in (
                ("READ e", "failed KEY_NOT_IDENTIFIED"), ("PUT e one", "ok"), ("READ e", "ok one"),
                ("SET e two words", "ok"), ("READ e", "ok two words"), ("STORE e", "ok"),
                ("DELETE e", "ok"), ("READ e", "ok"), ("LOCK e", "ok"), ("SET e three", "ok"),
                ("UNLOCK e", "ok"), ("UNLOCK e", "ok"), ("READ e", "ok three"),
                ("PUT " + "k" * 255 + " v", "ok"),
                ("PUT " + "k" * 256 + " v", "failed KEY_TOO_LONG"), ("PUT", "failed KEY_EMPTY")):
            with self.subTest(statement=statement):
                self.assertEqual(client.run(statement), result)
        self.assertEqual(client.end(), 1)
        self.assertEqual(self.status("e")["value"], "three")

    def test_batch_keeps_the_order_of_results(self):
        """More than one message holds, for every instance, with bad operations among them."""
        n = 4000
        writes = [f"PUT b:{i} value {i}" for i in range(n)]
        writes[17], writes[n - 1] = "PUT " + "k" * 256, "STORE nobody knows"
        wrong = {17: "failed KEY_TOO_LONG", n - 1: "failed KEY_NOT_IDENTIFIED"}
        client = self.client()
        self.assertEqual(client.batch(*writes), [wrong.get(i, "ok") for i in range(n)])
        self.assertEqual(
            client.batch(*(f"READ b:{i}" for i in range(n))),
            ["failed KEY_NOT_IDENTIFIED" if i in wrong else f"ok value {i}" for i in range(n)])
        keys = self.cluster.cli("keys", "--prefix", "b:", "-o", "json").json()["keys"]
        self.assertEqual(len(keys), n - len(wrong))
        self.assertEqual({key["owner"] for key in keys}, set(self.cluster.by_name))

    def test_batch_of_nothing(self):
        client = self.client()
        client.start()
        self.assertEqual(client.run("PUT n v"), "ok")
        self.assertEqual(client.end(), 0)

    def test_callbacks(self):
        for arguments, n in ((("3000", "100", "4"), 3000), (("10", "100", "4"), 10),
                             (("0", "1", "1"), 0)):
            result = run(FILL, self.cluster.coordinator, *arguments)
            self.assertEqual((result.code, result.text()), (0, f"{n} of {n} ok\n"))
        self.assertEqual(self.status("fill:2999")["value"], "fill:2999")

    def test_lock_is_for_one_client(self):
        holder, other = self.client(), self.client(timeout_ms=SHORT_MS)
        self.assertEqual(holder.run("PUT l old"), "ok")
        self.assertEqual(holder.run("LOCK l"), "ok old")
        self.assertEqual(self.status("l")["holder"], "client")
        self.assertEqual(other.run("PUT l stolen"), "failed KEY_NOT_LOCKED")
        self.assertEqual(other.run("READ l"), "ok old")
        self.assertNotEqual(outcome(other.run("LOCK l")), "ok")
        self.assertEqual(holder.batch("SET l new"), ["ok"])
        self.assertEqual(holder.run("STORE l"), "ok")  # gives it back
        self.assertEqual(other.run("LOCK l"), "ok new")
        self.assertEqual(other.run("UNLOCK l"), "ok")
        self.assertIsNone(self.status("l")["holder"])

    def test_lock_waits_for_its_turn(self):
        holder, other = self.client(), self.client()
        self.assertEqual(holder.batch("LOCK w"), ["ok"])
        other.start("LOCK w")
        wait_until(lambda: self.status("w")["waiters"], "the other client waits")
        self.assertEqual(holder.run("PUT w mine"), "ok")
        self.assertEqual(other.results(1), ["ok mine"])

    def test_lock_ends_with_its_client(self):
        holder, other = self.client(), self.client()
        self.assertEqual(holder.batch("LOCK d", "LOCK d:2"), ["ok", "ok"])
        self.assertEqual(holder.end(), 0)
        self.assertEqual(other.batch("LOCK d", "LOCK d:2"), ["ok", "ok"])


class Large(unittest.TestCase):
    """More at once than any queue on the way has room for."""

    def test_many_large_values_for_one_owner(self):
        n, value = 400, "v" * 65536
        writes = [f"PUT large:{i} {value}" for i in range(n)]
        with Cluster("--entries", "8192", "--entry-size", "4KiB", instances=1) as cluster, \
                Statements(cluster.coordinator, 60000) as client:
            for _ in range(2):  # with the routes of the first time all leave in one step
                self.assertEqual(client.batch(*writes), ["ok"] * n)
            self.assertEqual(client.batch(*(f"READ large:{i}" for i in range(n))),
                             [f"ok {value}"] * n)
            self.assertEqual(client.end(), 0)


class Routes(unittest.TestCase):
    """What a client remembers, seen by keeping the coordinator from answering."""

    def test_remembered_route_needs_no_coordinator(self):
        with Cluster(*LONG_LEASE) as cluster:
            with Statements(cluster.coordinator, SHORT_MS) as client:
                self.assertEqual(client.batch("PUT a 1", "PUT b 1", "PUT c 1"), ["ok"] * 3)
                self.assertEqual(cluster.cli("put", "other", "1").code, 0)
                cluster.pause("coordinator")
                self.assertEqual(client.batch("PUT a 2", "SET b 2", "READ c"),
                                 ["ok", "ok", "ok 1"])
                self.assertEqual(outcome(client.run("READ other")), "failed")
                cluster.resume("coordinator")
                self.assertEqual(client.batch("READ a", "READ b", "READ other"),
                                 ["ok 2", "ok 2", "ok 1"])

    def test_hint_leads_to_the_next_life_of_an_owner(self):
        """The owner's answer alone has to do: it says its incarnation, nobody else could."""
        with Cluster(*LONG_LEASE, instances=1) as cluster:
            with Statements(cluster.coordinator, SHORT_MS) as client:
                self.assertEqual(client.run("PUT a 1"), "ok")
                cluster.kill("instance-1")
                cluster.restart("instance-1")
                cluster.pause("coordinator")
                self.assertEqual(client.run("READ a"), "ok 1")
                self.assertEqual(client.run("SET a 2"), "ok")
                self.assertEqual(client.run("STORE a"), "ok")
                cluster.resume("coordinator")
                self.assertEqual(cluster.cli("read", "a").text().strip(), "2")

    def test_owner_that_is_silent(self):
        with Cluster(*LONG_LEASE, instances=1) as cluster:
            with Statements(cluster.coordinator, SHORT_MS) as client:
                self.assertEqual(client.run("PUT a 1"), "ok")
                cluster.pause("instance-1")
                self.assertEqual([outcome(result) for result in client.batch("PUT a 2", "READ a")],
                                 ["unknown", "failed"])
                cluster.resume("instance-1")
            with Statements(cluster.coordinator) as client:
                self.assertIn(client.run("READ a"), ("ok 1", "ok 2"))

    def test_store_gives_its_lock_back_once_the_coordinator_answers_again(self):
        with Cluster(*LONG_LEASE, instances=1) as cluster, \
                Statements(cluster.coordinator, SHORT_MS) as client, \
                Statements(cluster.coordinator) as other:
            self.assertEqual(client.batch("PUT a 1", "PUT b 1"), ["ok"] * 2)
            self.assertEqual(client.batch("LOCK a", "LOCK b"), ["ok 1"] * 2)
            cluster.pause("coordinator")
            self.assertEqual(client.batch("STORE a", "PUT b 2"), ["ok"] * 2)
            cluster.resume("coordinator")
            self.assertEqual(other.batch("LOCK a", "LOCK b"), ["ok 1", "ok 2"])

    def test_lock_outlives_the_coordinators_process(self):
        with Cluster(*LONG_LEASE, instances=1) as cluster, \
                Statements(cluster.coordinator) as client:
            self.assertEqual(client.run("LOCK a"), "ok")
            self.assertEqual(client.run("SET a 1"), "ok")
            cluster.kill("coordinator")
            cluster.restart("coordinator")
            self.assertEqual(client.run("STORE a"), "ok")
            self.assertIsNone(cluster.cli("status", "a", "-o", "json").json()["holder"])
            self.assertEqual(client.end(), 0)


class Installed(unittest.TestCase):
    """A program of somebody else needs what is installed, and nothing of the source."""

    def sanitizers(self):
        options = json.loads(subprocess.run(
            ["meson", "introspect", "--buildoptions", str(BUILD)], check=True,
            capture_output=True).stdout)
        chosen = next(o["value"] for o in options if o["name"] == "b_sanitize")
        return [] if chosen == "none" else [f"-fsanitize={chosen}"]

    def test_pkg_config(self):
        with tempfile.TemporaryDirectory() as directory, Cluster(instances=1) as cluster:
            subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--tags",
                            "devel", "--destdir", directory], check=True, capture_output=True)
            found = next(pathlib.Path(directory).rglob("redistinto-client.pc"))
            prefix = next(p for p in found.parents if p.name in ("lib", "lib64")).parent
            flags = subprocess.run(
                ["pkg-config", f"--define-variable=prefix={prefix}", "--cflags", "--libs",
                 "redistinto-client"], check=True, capture_output=True, text=True,
                env={**os.environ, "PKG_CONFIG_PATH": str(found.parent)}).stdout
            program = pathlib.Path(directory) / "program"
            subprocess.run(
                ["cc", *self.sanitizers(), str(ROOT / "examples" / "statements.c"), "-o",
                 str(program), *shlex.split(flags)], check=True)
            with Statements(cluster.coordinator, program=str(program)) as client:
                self.assertEqual(client.batch("PUT a 1", "PUT b 2"), ["ok", "ok"])
                self.assertEqual(client.batch("READ a", "READ b"), ["ok 1", "ok 2"])
                self.assertEqual(client.end(), 0)


if __name__ == "__main__":
    tap.main()
