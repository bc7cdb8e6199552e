"""The course configurations of deploy/examples/course: what their README says is so."""
import pathlib
import signal
import unittest

import tap
from cluster import Cluster

try:
    from fleet import Script
    from fleet_case import places
    MISSING = None
except unittest.SkipTest as skip:
    MISSING = str(skip)
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "examples" / "course"


@unittest.skipIf(MISSING, MISSING)
class Distribution(unittest.TestCase):
    """`distribution.ini` under each of the three rules."""

    def assert_places(self, rule, *expected):
        """Of each script, run one after the other."""
        with Cluster("--config", FOLDER / "distribution.ini", "--distribution", rule,
                     instances=2) as cluster:
            paths = sorted(FOLDER.glob("distribution-*.esi"))
            run = Script(cluster.coordinator, paths, "--config",
                         FOLDER / "distribution.ini").wait()
            self.assertEqual(run.code, 0, run.outcomes())
            self.assertEqual([r["script"] for r in run.results],
                             sorted(r["script"] for r in run.results), "one after the other")
            self.assertEqual(places(run).replace("instance-", ""), "".join(expected))

    def test_equitable_load(self):
        self.assert_places("equitable-load", "1212", "1212", "1212")

    def test_least_space_used(self):
        self.assert_places("least-space-used", "1212", "1222", "1221")

    def test_key_explicit(self):
        self.assert_places("key-explicit", "1212", "1121", "1212")


@unittest.skipIf(MISSING, MISSING)
class Planned(unittest.TestCase):
    """The configurations whose scripts run under a planner. The delay is for those who look."""

    def start(self, cluster, name, *options):
        return Script(cluster.coordinator, sorted(FOLDER.glob(f"{name}-*.esi")), "--config",
                      FOLDER / f"{name}.ini", *options)

    def cluster(self, name, instances, *options):
        return Cluster("--config", FOLDER / f"{name}.ini", "--delay-ms", "0", *options,
                       instances=instances)

    @staticmethod
    def number(result, name):
        """Of the script, as its file has it."""
        return pathlib.Path(result["script"]).name[len(name) + 1]

    def order(self, script, name):
        return "".join(self.number(r, name) for r in script.results if "line" in r)

    def assert_order(self, name, instances, expected, *options):
        with self.cluster(name, instances) as cluster:
            script = self.start(cluster, name, *options).wait()
            self.assertEqual((script.code, script.err), (0, ""), script.results)
            self.assertEqual(self.order(script, name), expected)
            return script

    def test_minimum(self):
        self.assert_order("minimum", 3, "1111111111" "22" "333333" "44" "22222" "44444")

    def test_planning_with_preemption(self):
        script = self.assert_order("planning", 2, "11" "222222" "3" "11111" "22" "33" "222"
                                                  "33333" "11111111" "2222")
        taken = [(self.number(r, "planning"), r["estimate"]) for r in script.results
                 if r.get("event") == "preempted"]
        self.assertEqual(taken, [("2", 2.5)])

    def test_planning_without_preemption(self):
        self.assert_order("planning", 2, "11" "222222" "3" "11111" "22222" "333333" "11111111"
                                         "2222", "--planner", "sjf-sd")

    def test_deadlock(self):
        with self.cluster("deadlock", 2) as cluster:
            script = self.start(cluster, "deadlock")
            self.addCleanup(script.kill)
            said = script.process.stderr.readline().decode().split()
            self.assertEqual([pathlib.Path(path).name[:len("deadlock-1")] for path in said[2:]],
                             [f"deadlock-{i}" for i in (1, 2, 3, 4)], said)
            script.signal(signal.SIGINT)
            self.assertEqual(script.wait().code, 130)


@unittest.skipIf(MISSING, MISSING)
class Replacement(unittest.TestCase):
    """`replacement.ini` under each algorithm, and the compaction script."""

    def run_scripts(self, cluster, *names):
        paths = [path for name in names for path in sorted(FOLDER.glob(name))]
        self.assertTrue(paths, names)
        script = Script(cluster.coordinator, paths, "--config", FOLDER / "replacement.ini").wait()
        self.assertEqual(script.code, 0, script.results)

    def assert_replaced(self, algorithm, gone):
        with Cluster("--config", FOLDER / "replacement.ini", "--delay-ms", "0", "--replacement",
                     algorithm, instances=1) as cluster:
            self.run_scripts(cluster, "replacement-*.esi")
            keys = {key["key"] for key in cluster.cli("keys", "-o", "json").json()["keys"]}
            self.assertEqual(keys, {"wood", "stone", "iron", "glass", "paper", "cloth", "rope"}
                             - {gone})

    def test_circ_takes_the_first_at_its_pointer(self):
        self.assert_replaced("CIRC", "wood")

    def test_lru_takes_who_was_set_least_recently(self):
        self.assert_replaced("LRU", "iron")

    def test_bsu_takes_who_uses_the_most_of_its_entry(self):
        self.assert_replaced("BSU", "glass")

    def test_compaction_moves_values_together_and_takes_nobody(self):
        with Cluster("--config", FOLDER / "replacement.ini", "--delay-ms", "0",
                     instances=1) as cluster:
            self.run_scripts(cluster, "compaction.esi")
            shown = cluster.cli("entries", "instance-1", "-o", "json").json()
            found = [entry["key"] for entry in sorted(shown["entries"], key=lambda e: e["index"])]
            self.assertEqual(found, ["crate", "barrel", "barrel", "chest", "chest", "trunk",
                                     "trunk", "trunk"])


if __name__ == "__main__":
    tap.main()
