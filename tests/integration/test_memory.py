"""Values that do not fit into an instance's entries: where they go, and that none is lost."""
import concurrent.futures
import unittest

import tap

try:
    from fleet_case import FleetCase
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

N_KEYS = 100


def key(i):
    return b"key:%d" % i


@unittest.skipIf(MISSING, MISSING)
class Eviction(FleetCase):
    """One instance with 8 entries of 10 bytes."""

    def setUp(self):
        self.fleet_ = self.fleet(instances="a", instance_options=[
            "--entries", "8", "--entry-size", "10", "--replacement", "LRU"])
        self.client = self.session(self.fleet_)

    def restart(self):
        self.fleet_.kill("a")
        self.fleet_.start_instance("a")

    def test_stored_values_outlive_their_entries_and_the_process(self):
        for i in range(N_KEYS):
            self.client.put(key(i), b"stored %d" % i)
        for i in range(N_KEYS):
            got = self.client.read(key(i)).key
            self.assertEqual((got.value, got.stored), (b"stored %d" % i, True))
        self.restart()
        for i in range(N_KEYS):
            got = self.client.read(key(i)).key
            self.assertEqual((got.value, got.stored), (b"stored %d" % i, True))
        self.client.put(key(0), b"and again")
        self.assertEqual(self.client.read(key(0)).key.value, b"and again")

    def test_set_values_outlive_their_entries_and_not_the_process(self):
        tokens = {}
        for i in range(N_KEYS):
            tokens[i] = self.client.get(key(i)).lock_token
            self.client.set(key(i), b"set %d" % i, tokens[i])
        for i in range(N_KEYS):
            got = self.client.read(key(i)).key
            self.assertEqual((got.value, got.stored), (b"set %d" % i, False))
        self.client.store(key(0), tokens[0])
        self.restart()
        got = self.client.read(key(0)).key
        self.assertEqual((got.value, got.stored), (b"set 0", True))
        got = self.client.read(key(1)).key
        self.assertTrue(got.sets_lost)
        self.assertIsNone(got.WhichOneof("optional_value"))

    def test_many_writers_at_once(self):
        """Each finds its own values, whoever evicts whom."""
        def work(name):
            with self.fleet_.session(name) as client:
                for i in range(40):
                    client.put(b"%s:%d" % (name.encode(), i % 10), b"%s %d" % (name.encode(), i))
                    self.assertEqual(client.read(b"%s:%d" % (name.encode(), i % 10)).key.value,
                                     b"%s %d" % (name.encode(), i))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, name) for name in ("w1", "w2", "w3", "w4")]:
                done.result()

    def test_c60_c61_only_values_of_one_entry_go(self):
        self.client.put(b"large:1", b"1" * 30)
        self.client.put(b"large:2", b"2" * 30)
        self.client.put(b"small:1", b"1")
        self.client.put(b"small:2", b"2")
        self.assert_fails("NO_ENTRIES", self.client.put, b"large:3", b"3" * 30)
        self.client.put(b"medium", b"m" * 20)
        for name, value in ((b"small:1", b"1"), (b"small:2", b"2"), (b"medium", b"m" * 20),
                            (b"large:1", b"1" * 30), (b"large:2", b"2" * 30)):
            self.assertEqual(self.client.read(name).key.value, value)

    def test_c62_larger_than_all_entries(self):
        self.client.put(b"small", b"s")
        self.assert_fails("NO_ENTRIES", self.client.put, b"k", b"x" * 81)
        self.assertFalse(self.fleet_.status(b"k").owner)
        self.client.put(b"k", b"x" * 71)
        self.assertEqual(self.client.read(b"small").key.value, b"s")


@unittest.skipIf(MISSING, MISSING)
class Compaction(FleetCase):
    """--compaction global: three instances with entries of 10 bytes compact together."""

    def start(self, *options, entries="4"):
        self.fleet_ = self.fleet("--compaction", "global", *options, instance_options=[
            "--entries", entries, "--entry-size", "10"])
        self.client = self.session(self.fleet_)

    def compactions(self):
        found = []
        for name in "abc":
            with self.fleet_.owner(name) as owner:
                found.append(owner.status().n_compactions)
        return found

    def make_holes(self):
        """Entries 1 and 3 of every instance are free."""
        for i in range(12):
            self.client.put(key(i), b"%d" % i)
        for i in (3, 4, 5, 9, 10, 11):
            self.client.delete(key(i))

    def shown(self, name):
        shown = self.fleet_.cli("entries", name, "-o", "json").json()
        return [(entry["index"], entry["key"]) for entry in shown["entries"]]

    def test_c68_all_three_compact_once(self):
        self.start("--lease", "60s")
        self.make_holes()
        self.assertEqual(self.shown("b"), [(0, "key:1"), (2, "key:7")])
        self.client.put(b"two entries", b"0123456789abc")
        self.assertEqual(self.shown("a"), [(0, "key:0"), (1, "key:6"), (2, "two entries"),
                                           (3, "two entries")])
        self.assertEqual(self.shown("b"), [(0, "key:1"), (1, "key:7")])
        self.assertEqual(self.shown("c"), [(0, "key:2"), (1, "key:8")])
        self.assertEqual(self.compactions(), [1, 1, 1])
        self.assertEqual(self.client.read(b"two entries").key.value, b"0123456789abc")
        for i in (0, 1, 2, 6, 7, 8):
            self.assertEqual(self.client.read(key(i)).key.value, b"%d" % i)
        log = self.fleet_.services["coordinator"].logged()
        self.assertIn("event=compacted round=1 instances=3 left_out=0", log)

    def test_c68_statements_of_many_while_instances_compact(self):
        self.start("--lease", "60s", "--distribution", "key-explicit", entries="9")

        def work(name):
            client = self.session(self.fleet_, name)
            for i in range(40):
                size = (1, 15, 3, 12)[i % 4]
                client.put(b"%s:%d" % (name.encode(), i % 2), b"x" * size)
                if i > 0:
                    client.delete(b"%s:%d" % (name.encode(), (i + 1) % 2))
            self.assertEqual(client.read(b"%s:1" % name.encode()).key.value, b"x" * 12)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(work, name) for name in ("w1", "w2", "w3")]:
                done.result()
        counts = self.compactions()
        self.assertEqual(len(set(counts)), 1, f"each round is everybody's: {counts}")

    def test_c68_an_instance_that_is_down_is_left_out(self):
        self.start("--lease", "10s")  # half of it for the others to answer
        self.make_holes()
        self.fleet_.kill("c")
        self.client.put(b"two entries", b"0123456789abc")
        self.assertEqual(self.shown("a")[2:], [(2, "two entries"), (3, "two entries")])
        self.assertEqual(self.shown("b"), [(0, "key:1"), (1, "key:7")])


@unittest.skipIf(MISSING, MISSING)
class Entries(FleetCase):
    """What `redistinto entries` shows."""

    def setUp(self):
        self.fleet_ = self.fleet(instances="ab", instance_options=["--entries", "5",
                                                                   "--entry-size", "10"])
        self.client = self.session(self.fleet_)

    def test_json(self):
        self.client.put(b"one", b"1")
        self.client.put(b"other instance", b"")
        self.client.put(b"long", b"0123456789abc")
        shown = self.fleet_.cli("entries", "a", "-o", "json").json()
        self.assertEqual(shown, {
            "instance": "a", "pointer": 0, "free": 2, "total": 5, "entry_size": 10,
            "entries": [
                {"index": 0, "key": "one", "offset": 0, "bytes": 1, "atomic": True},
                {"index": 1, "key": "long", "offset": 0, "bytes": 10, "atomic": False},
                {"index": 2, "key": "long", "offset": 10, "bytes": 3, "atomic": False}]})
        shown = self.fleet_.cli("entries", "b", "-o", "json").json()
        self.assertEqual([entry["key"] for entry in shown["entries"]], ["other instance"])

    def test_text(self):
        self.client.put(b"one", b"1")
        text = self.fleet_.cli("entries", "a").text()
        self.assertTrue(text.startswith(
            "a: 5 entries of 10 bytes, 4 free, replacement pointer at 0\n\n     0  o....\n"), text)

    def test_unknown_instance(self):
        result = self.fleet_.cli("entries", "c", "-o", "json")
        self.assertEqual((result.code, result.json()["error"]["code"]), (3, "NOT_FOUND"))

    def test_instance_that_is_down(self):
        self.fleet_.kill("a")
        result = self.fleet_.cli("entries", "a", "--timeout", "1s", "-o", "json")
        self.assertEqual(result.code, 5)


@unittest.skipIf(MISSING, MISSING)
class Growth(FleetCase):
    """--growth reject"""

    def test_c52_the_old_value_stays(self):
        fleet = self.fleet(instances="a", instance_options=["--entry-size", "10", "--growth",
                                                            "reject"])
        client = self.session(fleet)
        client.put(b"k", b"x" * 20)
        self.assert_fails("NO_ENTRIES", client.put, b"k", b"y" * 21)
        self.assertEqual(client.read(b"k").key.value, b"x" * 20)
        client.put(b"k", b"z" * 10)
        self.assertEqual(client.read(b"k").key.value, b"z" * 10)


@unittest.skipIf(MISSING, MISSING)
class Classic(FleetCase):
    """What is evicted is gone."""

    OPTIONS = ["--profile", "classic", "--lease", "2s"]

    def setUp(self):
        self.fleet_ = self.fleet(instances="a", instance_options=[
            "--profile", "classic", "--entries", "2", "--entry-size", "10"])
        self.client = self.session(self.fleet_)
        self.tokens = {name: self.client.get(name).lock_token for name in (b"a", b"b", b"c")}

    def set(self, name, value):
        return self.client.set(name, value, self.tokens[name])

    def test_d8_c54_the_answer_names_the_key_and_the_next_set_fails(self):
        self.set(b"a", b"1")
        self.assertEqual(list(self.set(b"b", b"2").key.evicted), [])
        self.assertEqual(list(self.set(b"c", b"3").key.evicted), [b"a"])
        self.assertFalse(self.fleet_.status(b"a").known)
        self.assert_fails("KEY_NOT_IDENTIFIED", self.set, b"a", b"4")
        self.assert_fails("KEY_NOT_IDENTIFIED", self.client.store, b"a", self.tokens[b"a"])

    def test_c84_status_of_what_has_no_value(self):
        """No instance has it; which would."""
        self.set(b"a", b"1")
        self.set(b"b", b"2")
        self.set(b"c", b"3")
        self.client.get(b"unplaced")
        for name, known in ((b"a", False), (b"unplaced", True), (b"never", False)):
            status = self.fleet_.status(name)
            self.assertEqual((status.known, status.owner, status.would_place), (known, "", "a"))
            self.assertIsNone(status.WhichOneof("optional_value"))
            self.assertFalse(status.value_unavailable)

    def test_c55_a_get_makes_it_anew(self):
        self.set(b"a", b"1")
        self.set(b"b", b"2")
        self.set(b"c", b"3")
        self.tokens[b"a"] = self.client.get(b"a").lock_token
        self.assertEqual(list(self.set(b"a", b"again").key.evicted), [b"b"])
        self.assertEqual(self.client.read(b"a").key.value, b"again")

    def test_c60_two_victims_stored_or_not(self):
        stored = self.set(b"a", b"1")
        self.client.store(b"a", self.tokens[b"a"], stored.key.version)
        self.set(b"b", b"2")
        self.assertEqual(list(self.set(b"c", b"0123456789abc").key.evicted), [b"a", b"b"])
        self.fleet_.kill("a")
        self.fleet_.start_instance("a")
        self.assertFalse(self.fleet_.status(b"a").known)

    def test_c52_growth_is_rejected(self):
        self.set(b"a", b"1")
        self.assert_fails("NO_ENTRIES", self.set, b"a", b"0123456789abc")
        self.assertEqual(self.client.read(b"a").key.value, b"1")

    def test_c61_nothing_to_evict(self):
        self.set(b"a", b"0123456789abc")
        self.assert_fails("NO_ENTRIES", self.set, b"b", b"2")
        self.assertEqual(self.client.read(b"a").key.value, b"0123456789abc")


@unittest.skipIf(MISSING, MISSING)
class DropAndKeep(FleetCase):
    """--eviction drop under a coordinator that keeps the keys of owners that are down."""

    def setUp(self):
        self.fleet_ = self.fleet(instances="a", instance_options=[
            "--eviction", "drop", "--entries", "2", "--entry-size", "10"])
        self.client = self.session(self.fleet_)

    def test_d8_a_stored_key_is_gone_and_not_lost(self):
        self.client.put(b"a", b"1")
        self.client.put(b"b", b"2")
        self.assertEqual(list(self.client.put(b"c", b"3").key.evicted), [b"a"])
        self.assertFalse(self.fleet_.status(b"a").known)
        self.fleet_.kill("a")
        self.fleet_.start_instance("a")
        self.assertFalse(self.fleet_.status(b"a").known)
        self.assertEqual(self.client.read(b"b").key.value, b"2")
        self.assertEqual(self.client.read(b"c").key.value, b"3")
        self.assertEqual(list(self.client.put(b"a", b"again").key.evicted), [b"b"])
        self.assertEqual(self.client.read(b"a").key.value, b"again")
        self.assertFalse(self.fleet_.status(b"b").known)


if __name__ == "__main__":
    tap.main()
