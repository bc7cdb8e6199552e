"""Numbered cases of the Re Distinto rules: where keys go, and instances that are gone.

Scripts through redistinto-esi, under the classic profile and, where the outcome differs, again
under the default one. Cases about single statements: test_statements.py.
"""
import time
import unittest

import tap
from cluster import wait_until

try:
    from api import StatementFailed
    from fleet_case import FleetCase, places, puts
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


class Case(FleetCase):
    """The classic profile, unless a class says otherwise."""

    OPTIONS = ["--profile", "classic"]


@unittest.skipIf(MISSING, MISSING)
class Distribution(Case):
    """Equitable Load."""

    def setUp(self):
        self.cluster = self.fleet()

    def test_c01_six_new_keys_go_round(self):
        script = self.assert_ok(self.cluster.esi(puts("123456")))
        self.assertEqual(places(script), "abcabc")

    def test_c02_second_set_stays_and_does_not_move_the_cursor(self):
        script = self.cluster.esi("GET k\nSET k 1\nSET k 2\nSTORE k\n" + puts("n"))
        self.assertEqual(places(self.assert_ok(script)), "aab")

    def test_c03_get_of_new_keys_does_not_move_the_cursor(self):
        script = self.cluster.esi("".join(f"GET only{i}\n" for i in range(5)) + puts("k"))
        self.assertEqual(places(self.assert_ok(script)), "a")
        self.assertTrue(all(r["instance"] == "" for r in script.results[:5]))

    def test_c04_c35_new_instance_waits_its_turn_at_the_tail(self):
        self.assertEqual(places(self.cluster.esi(puts("1"))), "a")
        self.cluster.start_instance("d")
        self.assertEqual(list(self.cluster.members()), ["a", "b", "c", "d"])
        self.assertEqual(places(self.cluster.esi(puts("23456"))), "bcdab")

    def test_c05_disconnected_instance_is_skipped(self):
        self.assertEqual(self.cluster.stop("b"), 0)
        self.assertEqual(places(self.cluster.esi(puts("123"))), "aca")
        self.cluster.start_instance("b")
        self.assertEqual(places(self.cluster.esi(puts("4"))), "b")

    def test_c23_simulation_says_what_the_next_placement_does(self):
        for expected in "abc":
            key = f"next-{expected}".encode()
            said = [self.cluster.cli("status", key.decode(), "-o", "json").json()["would_place"]
                    for _ in range(5)]
            self.assertEqual(said, [expected] * 5)
            self.assertEqual(self.cluster.status(key).would_place, expected)
            self.assertEqual(places(self.cluster.esi(puts([key.decode()]))), expected)
        self.assertEqual(self.cluster.cli("keys", "-o", "json").json()["keys"][0]["owner"], "a")

    def test_c23_cursor_survives_a_restart(self):
        self.assertEqual(places(self.cluster.esi(puts("12"))), "ab")
        self.cluster.kill("coordinator")
        self.cluster.start_coordinator()
        self.assertEqual(places(self.cluster.esi(puts("3"))), "c")


@unittest.skipIf(MISSING, MISSING)
class NoInstance(Case):
    """A coordinator alone."""

    def test_c24_placement_with_zero_instances(self):
        cluster = self.fleet(instances="")
        started = time.monotonic()
        script = cluster.esi("GET k\nSET k v\nSTORE k\n", "c24.esi", "--timeout", "500ms")
        self.assert_aborts(script, 2, "NO_INSTANCE")
        self.assertLess(time.monotonic() - started, 5)
        status = cluster.status(b"k")
        self.assertEqual((status.known, status.owner, status.would_place), (True, "", ""))
        self.assert_free(cluster, b"k")
        cluster.start_instance("a")
        self.assertEqual(places(self.assert_ok(cluster.esi(puts("k")))), "a")


@unittest.skipIf(MISSING, MISSING)
class OwnerDown(Case):
    """The instance of a key is gone, and someone wants the key."""

    def setUp(self):
        self.cluster = self.fleet("--lease", "1s")
        self.gatekeeper = self.cluster.session("gatekeeper")
        self.addCleanup(self.gatekeeper.abandon)
        self.gate = self.gatekeeper.get(b"gate").lock_token

    def behind_the_gate(self, before, after, *options):
        """Starts a script that stands at its GET of the gate between the two parts."""
        script = self.cluster.script(before + "GET gate\n" + after, "gated.esi", *options)
        self.addCleanup(script.kill)
        self.gate_line = before.count("\n") + 1
        script.wait_line(self.gate_line, "waiting")
        return script

    def open_gate(self, script):
        self.gatekeeper.store(b"gate", self.gate)
        return script.wait()

    def lose(self, name):
        self.cluster.kill(name)
        self.cluster.wait_state(name, "dead")

    def assert_forgotten(self, key):
        self.assertFalse(self.cluster.status(key).known)

    def test_c25_c26_store_by_the_holder(self):
        script = self.behind_the_gate("GET k\nSET k v\n", "STORE k\n")
        self.assertEqual(script.of_line(2)["instance"], "a")
        self.lose("a")
        self.assert_aborts(self.open_gate(script), 4, "KEY_INACCESSIBLE")
        self.assert_forgotten(b"k")
        again = self.assert_ok(self.cluster.esi("GET k\nSET k new\nSTORE k\n", "c26.esi"))
        self.assertEqual((again.of_line(1)["instance"], places(again)), ("", "b"))
        self.assertEqual(self.cluster.status(b"k").value, b"new")

    def test_c25_set_by_the_holder(self):
        script = self.behind_the_gate("GET k\nSET k v\n", "SET k w\n")
        self.lose("a")
        self.assert_aborts(self.open_gate(script), 4, "KEY_INACCESSIBLE")
        self.assert_forgotten(b"k")

    def test_c29_get_of_a_free_key(self):
        self.assert_ok(self.cluster.esi(puts("k")))
        self.lose("a")
        self.assertTrue(self.cluster.status(b"k").known)  # status is no access
        self.assert_aborts(self.cluster.esi("GET k\n"), 1, "KEY_INACCESSIBLE")
        self.assert_forgotten(b"k")
        again = self.assert_ok(self.cluster.esi(puts("k")))
        self.assertEqual(places(again), "b")

    def test_c30_get_of_a_held_key_waits(self):
        holder = self.cluster.session("holder")
        self.addCleanup(holder.abandon)
        token = holder.get(b"k").lock_token
        self.assertEqual(holder.set(b"k", b"v", token).instance, "a")
        self.lose("a")
        waiter = self.cluster.script("GET k\n", "waiter.esi")
        self.addCleanup(waiter.kill)
        waiter.wait_line(1, "waiting")
        self.assertEqual(self.cluster.status(b"k").waiters, ["waiter.esi"])
        with self.assertRaises(StatementFailed) as caught:
            holder.store(b"k", token)
        self.assertEqual(caught.exception.reason, "KEY_INACCESSIBLE")
        self.assertEqual(waiter.wait().outcomes()[-1], (1, "ok", ""))
        self.assertEqual(waiter.code, 0)

    def test_c27_c28_back_before_any_access(self):
        script = self.behind_the_gate("GET k1\nSET k1 v1\nSTORE k1\nGET k1\nGET k2\nSET k2 v2\n",
                                      "SET k1 again\nSTORE k1\nSET k2 more\nSTORE k2\n")
        self.assertEqual(places(script), "ab")
        self.lose("a")
        self.cluster.start_instance("a")
        self.assert_ok(self.open_gate(script))
        self.assertEqual(places(script), "abab")
        self.assertEqual([self.cluster.status(k).value for k in (b"k1", b"k2")],
                         [b"again", b"more"])

    def test_c27_store_of_a_lost_set(self):
        script = self.behind_the_gate("GET k\nSET k v\n", "STORE k\n")
        self.lose("a")
        self.cluster.start_instance("a")
        self.assert_aborts(self.open_gate(script), 4, "SET_LOST")
        self.assert_free(self.cluster, b"k")

    def test_c32_key_that_moved_stays_where_it_is(self):
        self.assert_ok(self.cluster.esi(puts("k")))
        self.lose("a")
        self.assert_aborts(self.cluster.esi("GET k\n"), 1, "KEY_INACCESSIBLE")
        self.assertEqual(places(self.assert_ok(self.cluster.esi("GET k\nSET k new\nSTORE k\n"))),
                         "b")
        self.cluster.start_instance("a")
        self.assertEqual(self.cluster.status(b"k").value, b"new")
        self.assertEqual(self.cluster.owner("a").status().n_keys, 0)


@unittest.skipIf(MISSING, MISSING)
class KeptLocks(Case):
    """D16: locks of aborted ESIs."""

    def aborted(self, *options):
        cluster = self.fleet(*options, instances="a")
        script = cluster.esi("GET k\nSET k v\nSET unknown v\n", "bad.esi")
        self.assert_aborts(script, 3, "KEY_NOT_IDENTIFIED")
        return cluster

    def test_d16_released_and_the_first_waiter_woken(self):
        cluster = self.aborted()
        self.assert_free(cluster, b"k")
        self.assert_ok(cluster.esi(puts("k")))

    def test_d16_kept_until_an_operator_frees_them(self):
        cluster = self.aborted("--keep-locks-on-abort")
        waiter = cluster.script(puts("k"), "waiter.esi")
        self.addCleanup(waiter.kill)
        waiter.wait_line(1, "waiting")
        self.assertEqual(cluster.status(b"k").holder, "bad.esi")
        cluster.kill("coordinator")
        cluster.start_coordinator()
        cluster.wait_state("a", "alive")
        self.assertEqual(cluster.status(b"k").holder, "bad.esi")
        freed = cluster.cli("unlock", "k", "-o", "json").json()
        self.assertEqual(freed, {"key": "k", "holder": "bad.esi"})
        self.assert_ok(waiter.wait())
        self.assertEqual(cluster.cli("unlock", "k").out, b"(nobody held it)\n")

    def test_d16_a_good_end_releases_all_the_same(self):
        cluster = self.fleet("--keep-locks-on-abort", instances="a")
        self.assert_ok(cluster.esi("GET k\nSET k v\n"))
        self.assert_free(cluster, b"k")


@unittest.skipIf(MISSING, MISSING)
class Rejoin(Case):
    """An instance comes back with all of its old data."""

    def test_c34_nothing_is_loaded_that_is_not_attributed_to_it(self):
        cluster = self.fleet("--lease", "1s", instances="a")
        keys = ["k1", "k2", "k3"]
        self.assert_ok(cluster.esi(puts(keys)))
        cluster.kill("a")
        cluster.wait_state("a", "dead")
        for key in keys:
            self.assert_aborts(cluster.esi(f"GET {key}\n"), 1, "KEY_INACCESSIBLE")
        cluster.start_instance("a")
        status = cluster.owner("a").status()
        self.assertEqual((status.n_keys, status.n_quarantined), (0, 3))
        again = self.assert_ok(cluster.esi("GET k1\nSET k1 new\nSTORE k1\nGET k2\n"))
        self.assertEqual((again.of_line(1)["instance"], places(again)), ("", "a"))
        self.assertNotIn("value", again.of_line(4))
        self.assertEqual(cluster.status(b"k1").value, b"new")


class OwnerDownDefault(OwnerDown):
    """D6 with `keep`: what may be stored waits for its instance, the rest is as in classic."""

    OPTIONS = []

    def test_c25_store_of_a_key_that_was_stored(self):
        script = self.behind_the_gate("GET k\nSET k v\nSTORE k\nGET k\nSET k w\n", "STORE k\n",
                                      "--timeout", "700ms")
        self.lose("a")
        self.assert_aborts(self.open_gate(script), 7, "OWNER_DOWN")
        self.assert_kept()

    def test_c29_get_of_a_free_key(self):
        self.assert_ok(self.cluster.esi(puts("k")))
        self.lose("a")
        script = self.cluster.esi("GET k\n", "c29.esi", "--timeout", "700ms")
        result = self.assert_aborts(script, 1, "OWNER_DOWN")
        self.assertEqual(result["code"], "UNAVAILABLE")
        self.assert_kept()

    def test_c29_get_of_a_key_that_was_never_stored(self):
        holder = self.cluster.session("holder")
        token = holder.get(b"k").lock_token
        self.assertEqual(holder.set(b"k", b"v", token).instance, "a")
        holder.close()
        self.lose("a")
        self.assert_aborts(self.cluster.esi("GET k\n"), 1, "KEY_INACCESSIBLE")
        self.assert_forgotten(b"k")

    def test_c29_get_waits_for_an_instance_that_comes_back_in_time(self):
        self.assert_ok(self.cluster.esi(puts("k")))
        self.lose("a")
        script = self.cluster.script("GET k\nSET k after\nSTORE k\n")
        self.addCleanup(script.kill)
        self.cluster.start_instance("a")
        self.assertEqual(places(self.assert_ok(script.wait())), "a")

    def test_c32_key_that_moved_stays_where_it_is(self):
        """Nothing moves under `keep`."""
        self.assert_ok(self.cluster.esi(puts("k")))
        self.lose("a")
        self.assert_kept()

    def assert_kept(self):
        status = self.cluster.status(b"k")
        self.assertEqual((status.known, status.owner), (True, "a"))
        epoch = status.epoch
        self.cluster.start_instance("a")
        again = self.assert_ok(self.cluster.esi("GET k\nSET k after\nSTORE k\n", "again.esi"))
        self.assertEqual((places(again), again.of_line(2)["epoch"]), ("a", epoch))
        self.assertEqual(self.cluster.status(b"k").value, b"after")


@unittest.skipIf(MISSING, MISSING)
class Names(Case):
    """C36: one live instance a name."""

    def test_c36_used_name(self):
        cluster = self.fleet(instances="ab")
        self.assert_ok(cluster.esi(puts("k")))
        before = cluster.incarnations()
        second = cluster.spawn_instance("a", data_dir=cluster.data_dir("second"))
        self.assertEqual(second.wait_exit(), 4)
        self.assertIn("NAME_IN_USE", second.logged())
        self.assertIn("'a'", second.logged())
        used = cluster.spawn_instance("a")
        self.assertEqual(used.wait_exit(), 4)
        self.assertIn(str(cluster.data_dir("a")), used.logged())
        self.assertEqual(cluster.incarnations(), before)
        self.assertEqual([cluster.state(name) for name in "ab"], ["alive", "alive"])
        self.assertEqual(cluster.status(b"k").value, b"of k")
        self.assert_ok(cluster.esi("GET k\nSET k goes on\nSTORE k\n"))
        wait_until(lambda: cluster.cli("health").code == 0, "all serve")


if __name__ == "__main__":
    tap.main()
