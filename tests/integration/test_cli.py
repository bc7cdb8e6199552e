"""The verbs that look at a cluster, as text and as JSON, and how they fail."""
import os
import signal
import socket
import subprocess
import unittest

import tap
from cluster import Cluster, binary, run, wait_until

try:
    import api
    MISSING = None
except unittest.SkipTest as skip:
    MISSING = str(skip)

ERROR_MEMBERS = ["code", "reason", "message", "applied"]


class WithoutCluster(unittest.TestCase):
    """What needs no process but the command itself."""

    def test_list_of_verbs(self):
        for arguments in ([], ["--help"], ["-h"]):
            result = run("redistinto", *arguments)
            self.assertEqual(result.code, 0)
            self.assertIn("\nVerbs:\n  dev ", result.text())

    def test_version(self):
        self.assertRegex(run("redistinto", "--version").text(), r"^redistinto \d+\.\d+\.\d+\n$")

    def test_unknown_verb(self):
        result = run("redistinto", "devel")
        self.assertEqual((result.code, result.out), (2, b""))
        self.assertIn(b"unknown verb 'devel'", result.err)
        self.assertIn(b"\n  status ", result.err)

    def test_bad_flags_say_what_is_valid(self):
        for arguments, valid in (
                (["dev", "--instances", "0"], "1..60"),
                (["dev", "--entries", "0"], "1..4294967295"),
                (["dev", "--lease", "10"], "s"),
                (["dev", "--lease", "100ms"], "1s..1h"),
                (["dev", "--base-port", "65536"], "0..65465"),
                (["dev", "--profile", "modern"], "classic"),
                (["keys", "--timeout", "0"], "1ms..1h"),
                (["keys", "-o", "xml"], "json"),
                (["status"], "KEY"),
                (["--bogus", "status", "a"], "--bogus")):
            result = run("redistinto", *arguments)
            self.assertEqual((result.code, result.out), (2, b""), arguments)
            self.assertIn(valid, result.err.decode(), arguments)

    def test_bad_flag_as_json(self):
        result = run("redistinto", "-o", "json", "dev", "--instances", "61")
        self.assertEqual((result.code, result.err), (2, b""))
        error = result.json()["error"]
        self.assertEqual(list(error), ERROR_MEMBERS)
        self.assertEqual(error["code"], "INVALID_ARGUMENT")

    def test_services_refuse_bad_flags(self):
        for arguments, valid in (
                (["redistinto-coordinator", "--data-dir", "x", "--lease", "1ms"], "1s..1h"),
                (["redistinto-coordinator", "--data-dir", "x", "--key-max", "256"], "1..255"),
                (["redistinto-coordinator"], "data-dir"),
                (["redistinto-instance", "--data-dir", "x"], "name"),
                (["redistinto-instance", "--data-dir", "x", "--name", "a b"], "A-Z"),
                (["redistinto-instance", "--data-dir", "x", "--name", "a", "--entries", "0"],
                 "1..4294967295")):
            result = run(*arguments)
            self.assertEqual((result.code, result.out), (2, b""), arguments)
            self.assertIn(valid, result.err.decode(), arguments)
            self.assertFalse(os.path.exists("x"))

    def test_no_coordinator(self):
        for verb in (["status", "a"], ["keys"], ["instances"], ["read", "a"]):
            result = run("redistinto", "--coordinator", "127.0.0.1:1", *verb)
            self.assertEqual((result.code, result.out), (5, b""), verb)
            self.assertRegex(result.err.decode(), rf"^redistinto: {verb[0]}: 127.0.0.1:1: .*"
                                                  r"\(UNAVAILABLE\)\n$")
            result = run("redistinto", *verb, "-o", "json", "--coordinator", "127.0.0.1:1")
            self.assertEqual((result.code, result.err), (5, b""), verb)
            self.assertEqual(list(result.json()["error"]), ERROR_MEMBERS)
            self.assertEqual(result.json()["error"]["applied"], "NO")

    def test_coordinator_from_the_environment(self):
        result = run("redistinto", "keys", env={"REDISTINTO_COORDINATOR": "127.0.0.1:2"})
        self.assertIn(b"127.0.0.1:2: ", result.err)

    def test_health_without_coordinator(self):
        result = run("redistinto", "health", "-o", "json", "--coordinator", "127.0.0.1:1")
        self.assertEqual((result.code, result.err), (5, b""))
        self.assertFalse(result.json()["serving"])
        self.assertEqual([m["name"] for m in result.json()["members"]], ["coordinator"])


class SilentPeer(unittest.TestCase):
    """A coordinator that takes the connection and never says anything."""

    def setUp(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def tearDown(self):
        self.socket.close()

    def test_timeout(self):
        for verb in (["status", "a"], ["read", "a"], ["health"]):
            result = run("redistinto", "--coordinator", self.address, "--timeout", "300ms", *verb)
            self.assertEqual(result.code, 5, result.err)
        self.assertIn(b"DEADLINE_EXCEEDED", run("redistinto", "--coordinator", self.address,
                                               "--timeout", "300ms", "keys").err)

    def test_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [binary("redistinto"), "--coordinator", self.address, "--timeout", "1m", "keys"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            connection = self.socket.accept()[0]
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
            connection.close()
            self.assertEqual((process.returncode, out), (130, b""), err)


class WithCluster(unittest.TestCase):
    """Looking at an idle cluster and at one with keys."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(
            Cluster("--entries", "100", "--entry-size", "10", instances=2))

    def cli(self, *arguments, **keywords):
        return self.cluster.cli(*arguments, **keywords)

    def test_instances(self):
        result = self.cli("instances", "-o", "json")
        self.assertEqual((result.code, result.err), (0, b""))
        instances = result.json()["instances"]
        self.assertEqual([i["name"] for i in instances], ["instance-1", "instance-2"])
        for instance in instances:
            self.assertEqual(list(instance), ["name", "address", "state", "incarnation", "keys",
                                              "entries_free", "entries_total", "last_renew_ms"])
            self.assertEqual(instance["address"],
                             self.cluster.by_name[instance["name"]]["address"])
            self.assertEqual((instance["state"], instance["entries_total"]), ("alive", 100))
            self.assertGreater(instance["incarnation"], 0)

    def test_instances_as_text(self):
        lines = self.cli("instances").text().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"^NAME +ADDRESS +STATE +INCARNATION +KEYS +FREE +ENTRIES ")
        self.assertRegex(lines[1], r"^instance-1  127\.0\.0\.1:\d+ +alive +\d+ +\d+ +\d+ +100 ")

    def test_health(self):
        result = self.cli("health", "-o", "json")
        self.assertEqual((result.code, result.err), (0, b""))
        self.assertTrue(result.json()["serving"])
        self.assertEqual([(m["name"], m["serving"]) for m in result.json()["members"]],
                         [("coordinator", True), ("instance-1", True), ("instance-2", True)])
        self.assertRegex(self.cli("health").text(), r"\ninstance-2 .* alive +yes +-\n$")

    def test_status_of_an_unknown_key(self):
        result = self.cli("status", "nowhere", "-o", "json")
        self.assertEqual((result.code, result.err), (0, b""))
        status = result.json()
        for member in ("value", "owner", "epoch", "holder"):
            self.assertIsNone(status[member])
        self.assertEqual((status["key"], status["waiters"]), ("nowhere", []))
        self.assertIn(status["would_place"], self.cluster.by_name)
        self.assertIn("(unknown)", self.cli("status", "nowhere").text())

    def test_status_never_moves_the_cursor(self):
        first = self.cli("status", "nowhere", "-o", "json").out
        for _ in range(4):
            self.assertEqual(self.cli("status", "nowhere", "-o", "json").out, first)
        self.assertNotIn("nowhere", self.cli("keys", "-o", "json").text())

    def test_keys_that_are_no_keys(self):
        result = self.cli("status", "x" * 256, "-o", "json")
        self.assertEqual(result.code, 2)
        self.assertEqual(result.json()["error"]["reason"], "KEY_TOO_LONG")
        self.assertEqual(self.cli("status", "x" * 255).code, 0)
        result = self.cli("status", "")
        self.assertEqual(result.code, 2)
        self.assertIn(b"(INVALID_ARGUMENT KEY_EMPTY)", result.err)

    def test_read_of_an_unknown_key(self):
        result = self.cli("read", "nowhere")
        self.assertEqual((result.code, result.out), (3, b""))
        self.assertIn(b"(NOT_FOUND KEY_NOT_IDENTIFIED)", result.err)
        result = self.cli("read", "nowhere", "-o", "json")
        self.assertEqual((result.code, result.err), (3, b""))
        self.assertEqual(result.json()["error"]["reason"], "KEY_NOT_IDENTIFIED")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([binary("redistinto"), "instances", "--coordinator",
                                   self.cluster.coordinator], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"writing the result", done.stderr)


@unittest.skipIf(MISSING, MISSING)
class WithKeys(WithCluster):
    """The same, beside keys that the Python client wrote."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.writer = api.Session(cls.cluster.coordinator, "writer")
        cls.writer.put(b"k:text", "caña".encode())
        cls.writer.put(b"k:\xff", b"\x00\xfe")
        cls.writer.put(b"k:empty", b"")
        cls.held = cls.writer.get(b"k:held")
        cls.waiter = api.Session(cls.cluster.coordinator, "waiter")
        cls.waiter.get(b"k:held")

    @classmethod
    def tearDownClass(cls):
        cls.writer.channel.close()
        cls.waiter.channel.close()
        super().tearDownClass()

    def test_read(self):
        self.assertEqual(self.cli("read", "k:text").out, "caña".encode())
        self.assertEqual(self.cli("read", b"k:\xff".decode("utf-8", "surrogateescape")).out,
                         b"\x00\xfe")
        result = self.cli("read", "k:empty")
        self.assertEqual((result.code, result.out, result.err), (0, b"", b""))

    def test_read_as_json(self):
        answer = self.cli("read", "k:text", "-o", "json").json()
        self.assertEqual((answer["key"], answer["value"]), ("k:text", "caña"))
        self.assertTrue(answer["stored"])
        self.assertEqual(answer["version"]["epoch"], answer["epoch"])
        odd = self.cli("read", b"k:\xff".decode("utf-8", "surrogateescape"), "-o", "json").json()
        self.assertEqual((odd["key"], odd["value"]), ({"base64": "azr/"}, {"base64": "AP4="}))

    def test_read_of_a_key_without_value(self):
        result = self.cli("read", "k:held")
        self.assertEqual((result.code, result.out), (3, b""))

    def test_status_of_a_key(self):
        status = self.cli("status", "k:text", "-o", "json").json()
        self.assertEqual((status["value"], status["stored"]), ("caña", True))
        self.assertIn(status["owner"], self.cluster.by_name)
        self.assertIsNone(status["holder"])
        self.assertGreater(status["epoch"], 0)

    def test_status_of_a_held_key(self):
        status = self.cli("status", "k:held", "-o", "json").json()
        self.assertEqual((status["holder"], status["waiters"]), ("writer", ["waiter"]))
        self.assertIsNone(status["value"])
        text = self.cli("status", "k:held").text()
        self.assertRegex(text, r"locked by +writer\nwaiting +waiter\n")

    def test_keys(self):
        keys = self.cli("keys", "--prefix", "k:", "-o", "json").json()["keys"]
        self.assertEqual([k["key"] for k in keys],
                         ["k:empty", "k:held", "k:text", {"base64": "azr/"}])
        for key in keys:
            self.assertEqual(list(key), ["key", "owner", "epoch", "holder"])
        self.assertEqual([k["holder"] for k in keys], [None, "writer", None, None])
        self.assertEqual([k["owner"] is None for k in keys], [False, True, False, False])
        self.assertEqual(self.cli("keys", "--prefix", "none", "-o", "json").json(), {"keys": []})

    def test_keys_as_text(self):
        lines = self.cli("keys", "--prefix", "k:").text().splitlines()
        self.assertRegex(lines[0], r"^KEY +OWNER +EPOCH  LOCKED BY$")
        self.assertRegex(lines[2], r"^k:held +- +-  writer$")
        self.assertTrue(lines[4].startswith(r"k:\xff "))

    def test_keys_of_more_than_one_page(self):
        with api.Session(self.cluster.coordinator, "many") as session:
            for i in range(1001):
                session.get(b"page:%04d" % i)
            keys = self.cli("keys", "--prefix", "page:", "-o", "json").json()["keys"]
        self.assertEqual([k["key"] for k in keys], [f"page:{i:04d}" for i in range(1001)])


class LosingMembers(unittest.TestCase):
    """What health and instances say when one is gone."""

    def test_dead_and_back(self):
        with Cluster("--lease", "1s", instances=2) as cluster:
            cluster.kill("instance-1")
            result = cluster.cli("health", "-o", "json")
            self.assertEqual(result.code, 5)
            members = {m["name"]: m for m in result.json()["members"]}
            self.assertEqual([members[n]["serving"] for n in
                              ("coordinator", "instance-1", "instance-2")], [True, False, True])
            self.assertTrue(members["instance-1"]["message"])
            cluster.wait_state("instance-1", "dead")
            self.assertEqual(cluster.cli("health").code, 5)
            cluster.restart("instance-1")
            wait_until(lambda: cluster.cli("health").code == 0, "all serve again")

    def test_paused_member_costs_its_share_of_the_time(self):
        with Cluster(instances=2) as cluster:
            cluster.pause("instance-1")
            result = cluster.cli("health", "-o", "json", "--timeout", "2s")
            cluster.resume("instance-1")
            self.assertEqual(result.code, 5)
            self.assertEqual([m["serving"] for m in result.json()["members"]],
                             [True, False, True])

    def test_member_that_left_is_no_failure(self):
        with Cluster(instances=2) as cluster:
            os.kill(cluster.pid_of("instance-2"), signal.SIGTERM)
            cluster.wait_state("instance-2", "left")
            result = cluster.cli("health", "-o", "json")
            self.assertEqual((result.code, result.json()["serving"]), (0, True))
            self.assertEqual(result.json()["members"][2]["state"], "left")


if __name__ == "__main__":
    tap.main()
