"""The course configurations of deploy/examples/course: what their README says is so."""
import pathlib
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
            found = []
            for path in sorted(FOLDER.glob("distribution-*.esi")):
                script = Script(cluster.coordinator, [path]).wait()
                self.assertEqual(script.code, 0, script.outcomes())
                found.append(places(script).replace("instance-", ""))
            self.assertEqual(tuple(found), expected)

    def test_equitable_load(self):
        self.assert_places("equitable-load", "1212", "1212", "1212")

    def test_least_space_used(self):
        self.assert_places("least-space-used", "1212", "1222", "1221")

    def test_key_explicit(self):
        self.assert_places("key-explicit", "1212", "1121", "1212")


if __name__ == "__main__":
    tap.main()
