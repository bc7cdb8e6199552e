"""The operation log, the delay of operations, and what the coordinator says of its rules."""
import pathlib
import re
import tempfile
import time
import unittest

import tap

try:
    from cluster import wait_until
    from fleet_case import FleetCase, puts
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


@unittest.skipIf(MISSING, MISSING)
class OperationLog(FleetCase):
    """`--operation-log FILE`."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="redistinto-test-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def logged(self):
        path = self.directory / "operations.log"
        cluster = self.fleet("--profile", "classic", "--operation-log", path, instances="a")
        return cluster, path

    def lines(self, path):
        """Without the times, which are checked."""
        found = []
        for line in path.read_text().splitlines():
            stamp, rest = line.split(" ", 1)
            self.assertRegex(stamp, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            found.append(rest)
        return found

    def test_c94_one_line_an_operation(self):
        cluster, path = self.logged()
        self.assert_ok(cluster.esi(puts("k"), "one.esi"))
        cluster.esi("SET unknown secret\n", "two.esi")
        expected = ["esi=one.esi statement=GET key=k result=OK",
                    "esi=one.esi statement=SET key=k bytes=4 instance=a result=OK",
                    "esi=one.esi statement=STORE key=k instance=a result=OK",
                    "esi=two.esi statement=SET key=unknown bytes=6 result=KEY_NOT_IDENTIFIED"]
        wait_until(lambda: self.lines(path) == expected, "the lines are there")
        self.assertNotIn("secret", path.read_text())

    def test_status_is_no_operation(self):
        cluster, path = self.logged()
        cluster.status(b"k")
        self.assert_ok(cluster.esi("GET k\n", "one.esi"))
        wait_until(lambda: self.lines(path) == ["esi=one.esi statement=GET key=k result=OK"],
                   "the line is there")

    def test_it_is_complete_after_the_end_and_appended_to(self):
        cluster, path = self.logged()
        for run in (1, 2):
            script = cluster.esi("".join(f"GET {k}\n" for k in range(300)), "many.esi")
            self.assert_ok(script)
            self.assertEqual(cluster.stop("coordinator"), 0)
            self.assertEqual(len(self.lines(path)), 300 * run)
            cluster.start_coordinator()

    def test_a_file_that_cannot_be_opened(self):
        cluster = self.fleet(instances="")
        self.assertEqual(cluster.stop("coordinator"), 0)
        with self.assertRaises(AssertionError):
            cluster.start_coordinator("--operation-log", self.directory / "no" / "file")
        service = cluster.services["coordinator"]
        self.assertEqual(service.wait_exit(), 2)
        self.assertIn("--operation-log", service.logged())

    def test_a_full_disk_stops_nothing(self):
        cluster = self.fleet("--operation-log", "/dev/full", instances="a")
        self.assert_ok(cluster.esi(puts("123")))
        service = cluster.services["coordinator"]
        wait_until(lambda: "event=operation_log_failed" in service.logged(), "it is said")
        self.assert_ok(cluster.esi(puts("456")))
        self.assertEqual(cluster.stop("coordinator"), 0)


@unittest.skipIf(MISSING, MISSING)
class Delay(FleetCase):
    """`--delay-ms`."""

    def test_c83_operations_wait_and_status_does_not(self):
        cluster = self.fleet("--delay-ms", 300, instances="a")
        started = time.monotonic()
        script = cluster.script(puts("k"), "slow.esi")
        self.addCleanup(script.kill)
        answers = 0
        while script.process.poll() is None:
            cluster.status(b"k")
            answers += 1
        self.assert_ok(script.wait())
        self.assertGreaterEqual(time.monotonic() - started, 0.9)
        self.assertGreater(answers, 0)


@unittest.skipIf(MISSING, MISSING)
class Rules(FleetCase):
    """What a profile sets is said."""

    def test_the_profile_says_what_it_sets(self):
        cluster = self.fleet("--profile", "classic", "--distribution", "key-explicit",
                             instances="")
        rules = re.search(r"event=rules (.*)", cluster.services["coordinator"].logged()).group(1)
        self.assertEqual(rules, "profile=classic distribution=key-explicit key-ranges=even "
                                "key-max=40 locking=required on-owner-down=forget "
                                "compaction=global keep-locks-on-abort=false delay_ms=0")

    def test_an_instance_says_it_too(self):
        cluster = self.fleet("--profile", "classic", instances="a", instance_options=[
            "--profile", "classic", "--entries", "8", "--entry-size", "10"])
        rules = re.search(r"event=rules (.*)", cluster.services["a"].logged()).group(1)
        self.assertEqual(rules, "profile=classic entries=8 entry-size=10 replacement=CIRC "
                                "growth=reject eviction=drop store=files dump-interval_ms=10000")


if __name__ == "__main__":
    tap.main()
