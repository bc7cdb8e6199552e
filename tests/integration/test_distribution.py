"""Numbered cases of the Re Distinto rules: least space used, key explicit, the rule at run time.

Equitable load is in test_cases.py. Scripts through redistinto-esi, under the classic profile.
"""
import unittest

import tap

try:
    from fleet_case import FleetCase, places, puts
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


class Case(FleetCase):
    """The classic profile with a rule."""

    RULE = ""

    def ruled(self, entries=20, instances="abc"):
        return self.fleet("--profile", "classic", "--distribution", self.RULE,
                          instances=instances,
                          instance_options=["--entries", entries, "--entry-size", 10])

    def sets(self, cluster, *pairs):
        """Where the first SET of each key went."""
        text = "".join(f"GET {key}\nSET {key} {value}\n" for key, value in pairs)
        return places(self.assert_ok(cluster.esi(text)))

    def would_place(self, cluster, key=b"never:set"):
        return cluster.status(key).would_place


@unittest.skipIf(MISSING, MISSING)
class LeastSpaceUsed(Case):
    """Most free entries; among equals one after the other."""

    RULE = "least-space-used"

    def test_c07_free_entries_5_9_7(self):
        cluster = self.ruled(entries=10)
        text = "".join(f"GET {k}\nSET {k} {'x' * n}\n" for k, n in (("a", 50), ("b", 1), ("c", 30)))
        self.assertEqual(places(self.assert_ok(cluster.esi(text))), "abc")
        free = [member.entries_free for member in cluster.members().values()]
        self.assertEqual(free, [5, 9, 7])
        self.assertEqual(self.would_place(cluster), "b")
        self.assertEqual(self.sets(cluster, ("d", "1")), "b")

    def test_c08_all_empty(self):
        cluster = self.ruled()
        self.assertEqual(self.sets(cluster, *((key, "1") for key in "123456")), "abcabc")

    def test_c09_all_full(self):
        cluster = self.ruled(entries=1)
        self.assertEqual(self.sets(cluster, ("1", "x"), ("2", "x"), ("3", "x")), "abc")
        self.assertEqual([m.entries_free for m in cluster.members().values()], [0, 0, 0])
        self.assertEqual(self.would_place(cluster), "a")

    def test_c10_store_changes_nothing(self):
        cluster = self.ruled(instances="ab")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("1")))), "a")
        self.assertEqual(self.would_place(cluster), "b")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("234")))), "bab")

    def test_c11_entries_and_not_bytes(self):
        cluster = self.fleet("--profile", "classic", "--distribution", self.RULE, instances="ab",
                             instance_options=["--entries", 20, "--entry-size", 100])
        self.assertEqual(self.sets(cluster, ("a0", "1"), ("b", "x" * 90)), "ab")
        self.assertEqual(cluster.cli("distribution", "key-explicit").code, 0)
        self.assertEqual(self.sets(cluster, *((f"a{i}", "1") for i in range(1, 10))), "a" * 9)
        self.assertEqual(cluster.cli("distribution", self.RULE).code, 0)
        self.assertEqual([m.entries_free for m in cluster.members().values()], [10, 19])
        self.assertEqual(self.sets(cluster, ("new", "1")), "b")

    def test_a_newcomer_is_the_emptiest(self):
        cluster = self.ruled(instances="ab")
        self.assertEqual(self.sets(cluster, *((key, "1") for key in "1234")), "abab")
        cluster.start_instance("c")
        self.assertEqual(self.sets(cluster, *((key, "1") for key in "567")), "cca")


@unittest.skipIf(MISSING, MISSING)
class KeyExplicit(Case):
    """By the first letter."""

    RULE = "key-explicit"

    def test_c13_c16_c17_four_instances(self):
        cluster = self.ruled(instances="abcd")
        self.assertEqual(self.sets(cluster, *((key, "1") for key in "aghmntuz")), "aabbccdd")
        self.assertEqual(self.sets(cluster, ("Zeta", "1")), "d")
        self.assertEqual((cluster.status(b"Zeta").known, cluster.status(b"zeta").known),
                         (True, False))
        self.assertEqual(self.sets(cluster, *((key, "1") for key in ("9x", ":x", "_x", "ñu"))),
                         "aaad")

    def test_c14_c15_two_instances(self):
        cluster = self.ruled(instances="ab")
        self.assertEqual(self.sets(cluster, *((key, "1") for key in
                                              ("m", "n", "bebida1", "microsoft:xbox",
                                               "nintendo:nes", "sony:ps1"))), "abaabb")

    def test_c18_one_instance(self):
        cluster = self.ruled(instances="a")
        self.assertEqual(self.sets(cluster, *((key, "1") for key in ("a", "z", "9", "ñ"))), "aaaa")

    def test_c22_whoever_came_last(self):
        """The turn of equitable load decides nothing."""
        cluster = self.ruled()
        self.assertEqual(self.sets(cluster, *((key, "1") for key in ("zz", "aa", "ab", "zy", "ac"))),
                         "caaca")

    def test_c19_third_instance_moves_nothing(self):
        cluster = self.ruled(instances="ab")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("k")))), "a")
        cluster.start_instance("c")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts(["k", "kk"])))), "ab")

    def test_ceil(self):
        cluster = self.fleet("--distribution", self.RULE, "--key-ranges", "ceil",
                             instances="abcd")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("gnuv")))), "abcd")


@unittest.skipIf(MISSING, MISSING)
class AtRunTime(Case):
    """`redistinto distribution`."""

    RULE = "equitable-load"

    def holds(self, cluster):
        answer = cluster.cli("distribution", "-o", "json").json()
        return answer["distribution"], answer["configured"]

    def test_it_is_shown_changed_and_durable(self):
        cluster = self.ruled()
        self.assertEqual(self.holds(cluster), ("equitable-load", "equitable-load"))
        self.assertEqual(cluster.cli("distribution").out, b"equitable-load\n")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("z")))), "a")
        changed = cluster.cli("distribution", "key-explicit", "-o", "json").json()
        self.assertEqual(changed, {"distribution": "key-explicit", "configured": "equitable-load"})
        self.assertEqual(self.would_place(cluster, b"zz"), "c")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts(["z", "zz"])))), "ac")
        cluster.kill("coordinator")
        cluster.start_coordinator()
        self.assertEqual(self.holds(cluster), ("key-explicit", "equitable-load"))
        cluster.kill("coordinator")
        cluster.start_coordinator("--distribution", "least-space-used")
        self.assertEqual(self.holds(cluster), ("least-space-used", "least-space-used"))

    def test_d04_one_cursor_for_all_rules(self):
        cluster = self.ruled()
        self.assertEqual(self.sets(cluster, ("1", "x")), "a")
        self.assertEqual(cluster.cli("distribution", "key-explicit").code, 0)
        self.assertEqual(self.sets(cluster, ("m", "x")), "b")
        self.assertEqual(cluster.cli("distribution", "equitable-load").code, 0)
        self.assertEqual(self.sets(cluster, ("2", "x")), "c")

    def test_what_is_no_rule(self):
        cluster = self.ruled(instances="")
        refused = cluster.cli("distribution", "nearest")
        self.assertEqual(refused.code, 2)
        self.assertIn("least-space-used", refused.err.decode())


if __name__ == "__main__":
    tap.main()
