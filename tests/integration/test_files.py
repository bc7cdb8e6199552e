"""Values in files: what is written, what goes, what a start puts right and what it leaves alone."""
import unittest

import tap

try:
    from cluster import Cluster, wait_until
    from fleet import LiveSession
    from fleet_case import FleetCase
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


def content(directory):
    """Of each file, by name; directories aside."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@unittest.skipIf(MISSING, MISSING)
class Classic(FleetCase):
    """The profile keeps files, by itself."""

    OPTIONS = ["--profile", "classic", "--lease", "1s"]

    def start(self, instances, *options):
        self.fleet_ = self.fleet(instances=instances, instance_options=[
            "--profile", "classic", "--entries", "2", "--entry-size", "10", *options])
        self.client = self.session(self.fleet_)

    def files(self, name="a"):
        return content(self.fleet_.data_dir(name) / "files")

    def stored(self, key, value):
        token = self.client.get(key).lock_token
        done = self.client.set(key, value, token)
        self.client.store(key, token, done.key.version)
        return done

    def test_c46_store_without_a_set_writes_nothing(self):
        self.start("a")
        token = self.client.get(b"k").lock_token
        self.client.store(b"k", token)
        self.assertEqual(self.files(), {})
        self.assertEqual(self.fleet_.status(b"k").holder, "")

    def test_c47_the_file_is_exactly_the_value(self):
        self.start("ab")
        self.assertEqual(self.stored(b"sony:ps3", b"TLOU  2 ").instance, "a")
        self.assertEqual(self.files(), {"sony:ps3": b"TLOU  2 "})
        self.assertEqual(self.client.read(b"sony:ps3").key.value, b"TLOU  2 ")
        self.assertEqual(self.stored(b"sony:ps3", b"x").instance, "a")
        self.assertEqual(self.files(), {"sony:ps3": b"x"})

    def test_set_alone_writes_no_file(self):
        self.start("a", "--store", "files")
        self.client.set(b"k", b"v", self.client.get(b"k").lock_token)
        self.assertEqual(self.files(), {})

    def test_c70_the_file_of_an_evicted_key_goes(self):
        self.start("a")
        self.stored(b"a", b"1")
        self.stored(b"b", b"2")
        self.assertEqual(self.files(), {"a": b"1", "b": b"2"})
        self.assertEqual(list(self.stored(b"c", b"3").key.evicted), [b"a"])
        self.assertEqual(self.files(), {"b": b"2", "c": b"3"})
        self.fleet_.kill("a")
        self.fleet_.start_instance("a")
        self.assertEqual(self.files(), {"b": b"2", "c": b"3"})
        self.assertFalse(self.fleet_.status(b"a").known)

    def test_c34_files_of_nobody_are_not_loaded(self):
        self.start("a")
        self.stored(b"mine", b"1")
        self.fleet_.kill("a")
        directory = self.fleet_.data_dir("a") / "files"
        (directory / "old").write_bytes(b"of another time")
        (directory / "mine").write_bytes(b"edited")
        self.fleet_.start_instance("a")
        self.assertFalse(self.fleet_.status(b"old").known)
        self.assertEqual(self.fleet_.status(b"mine").value, b"1")
        self.assertEqual(self.files(), {"mine": b"1", "old": b"of another time"})

    def test_c32_a_key_that_moved_is_not_loaded(self):
        self.start("ab")
        self.assertEqual(self.stored(b"k", b"old").instance, "a")
        self.fleet_.kill("a")
        self.fleet_.wait_state("a", "dead")
        self.assert_aborts(self.fleet_.esi("GET k\n"), 1, "KEY_INACCESSIBLE")
        self.assertEqual(self.stored(b"k", b"new").instance, "b")
        self.fleet_.start_instance("a")
        self.assertEqual(self.fleet_.status(b"k").value, b"new")
        self.assertEqual(self.fleet_.owner("a").status().n_keys, 0)
        self.assertEqual(self.files("b"), {"k": b"new"})


@unittest.skipIf(MISSING, MISSING)
class Dump(FleetCase):
    """--dump-interval"""

    SOON = ["--dump-interval", "50ms"]
    NEVER = ["--dump-interval", "24h"]

    def start(self, *options):
        self.fleet_ = self.fleet(instances="")
        self.fleet_.start_instance("a", *options)
        self.client = self.session(self.fleet_)
        self.token = self.client.get(b"k").lock_token

    def set(self, value):
        return self.client.set(b"k", value, self.token).key.version

    def wait_file(self, value):
        wait_until(lambda: content(self.fleet_.data_dir("a") / "files").get("k") == value,
                   f"the file of k is {value}")

    def restart(self, *options):
        self.fleet_.kill("a")
        self.fleet_.start_instance("a", *options)

    def test_c71_the_file_follows_the_value(self):
        self.start("--store", "files", *self.SOON)
        for value in (b"first", b"second", b""):
            self.set(value)
            self.wait_file(value)
        self.assertEqual(set(content(self.fleet_.data_dir("a") / "files")), {"k"})

    def test_c27_store_of_a_dumped_set(self):
        self.start("--store", "files", *self.SOON)
        version = self.set(b"dumped")
        self.wait_file(b"dumped")
        self.restart("--store", "files", *self.NEVER)
        self.client.store(b"k", self.token, version)
        got = self.client.read(b"k").key
        self.assertEqual((got.value, got.stored, got.sets_lost), (b"dumped", True, False))

    def test_c27_store_of_a_set_after_the_last_dump(self):
        self.start("--store", "files", *self.SOON)
        self.set(b"dumped")
        self.wait_file(b"dumped")
        self.restart("--store", "files", *self.NEVER)
        version = self.set(b"lost")
        self.restart("--store", "files", *self.NEVER)
        self.assert_fails("SET_LOST", self.client.store, b"k", self.token, version)
        self.assertEqual(self.client.read(b"k").key.value, b"dumped")

    def test_c72_operations_go_on(self):
        self.start("--dump-interval", "1ms")
        for i in range(300):
            self.set(b"%d" % i)
            self.assertEqual(self.client.read(b"k").key.value, b"%d" % i)
        wait_until(lambda: self.client.read(b"k").key.stored, "the last value is dumped")
        self.restart(*self.NEVER)
        self.assertEqual(self.client.read(b"k").key.value, b"299")

    def test_c70_the_file_of_a_dumped_key_that_is_evicted(self):
        self.start("--store", "files", "--eviction", "drop", "--entries", "1", *self.SOON)
        self.set(b"dumped")
        self.wait_file(b"dumped")
        other = self.client.get(b"other").lock_token
        self.assertEqual(list(self.client.set(b"other", b"v", other).key.evicted), [b"k"])
        self.assertNotIn("k", content(self.fleet_.data_dir("a") / "files"))


@unittest.skipIf(MISSING, MISSING)
class MountPoint(FleetCase):
    """--mount"""

    def test_names_stay_inside(self):
        fleet = self.fleet(instances="")
        mount = fleet.directory / "mount"
        fleet.start_instance("a", "--store", "files", "--mount", mount)
        client = self.session(fleet)
        keys = {b"../k": "%2E.%2Fk", b".": "%2E", b"..": "%2E.", b"%2F": "%252F", b"a/b": "a%2Fb",
                b"\x00": "%00", "ñ".encode(): "ñ"}
        for i, key in enumerate(keys):
            client.put(key, b"%d" % i)
        self.assertEqual(content(mount), {name: b"%d" % i for i, name in enumerate(keys.values())})
        before = {path.name for path in fleet.directory.iterdir()}
        client.put(b"\xff/" * 127, b"long")
        self.assertEqual({path.name for path in fleet.directory.iterdir()}, before)
        self.assertEqual(client.read(b"\xff/" * 127).key.value, b"long")
        client.delete(b"../k")
        self.assertNotIn("%2E.%2Fk", content(mount))

    def test_two_instances_cannot_share_it(self):
        fleet = self.fleet(instances="")
        mount = fleet.directory / "mount"
        fleet.start_instance("a", "--store", "files", "--mount", mount)
        second = fleet.spawn_instance("b", "--store", "files", "--mount", mount)
        self.assertEqual(second.wait_exit(), 4, second.logged())
        self.assertIn("is in use", second.logged())

    def test_mount_points_that_cannot_be(self):
        fleet = self.fleet(instances="")
        for mount, code, text in (
                (fleet.directory / "no" / "such", 2, "--mount"),
                (fleet.data_dir("a"), 4, "where the store itself keeps its files")):
            instance = fleet.spawn_instance("a", "--store", "files", "--mount", mount)
            self.assertEqual(instance.wait_exit(), code, instance.logged())
            self.assertIn(text, instance.logged())

    def test_files_come_and_stay_when_the_store_is_changed(self):
        """A start with files writes what is missing; one without leaves them as they are."""
        fleet = self.fleet(instances="a")
        client = self.session(fleet)
        client.put(b"k", b"1")
        self.assertEqual(fleet.stop("a"), 0)
        fleet.start_instance("a", "--store", "files")
        mount = fleet.data_dir("a") / "files"
        self.assertEqual(content(mount), {"k": b"1"})
        self.assertEqual(fleet.stop("a"), 0)
        fleet.start_instance("a")
        client.put(b"k", b"2")
        self.assertEqual(content(mount), {"k": b"1"})
        self.assertEqual(fleet.stop("a"), 0)
        fleet.start_instance("a", "--store", "files")
        self.assertEqual(content(mount), {"k": b"2"})


@unittest.skipIf(MISSING, MISSING)
class Dev(unittest.TestCase):
    """`redistinto dev` says where the files are by where its data is."""

    def test_store(self):
        for options in (["--store", "files"], ["--profile", "classic"]):
            with Cluster(*options, instances=1) as cluster:
                client = LiveSession(cluster.coordinator)
                self.addCleanup(client.abandon)
                token = client.get(b"k").lock_token
                client.store(b"k", token, client.set(b"k", b"v", token).key.version)
                self.assertEqual(content(cluster.data_dir / "instance-1" / "files"), {"k": b"v"})
        with Cluster("--profile", "classic", "--store", "lmdb", instances=1) as cluster:
            self.assertFalse((cluster.data_dir / "instance-1" / "files").exists())


if __name__ == "__main__":
    tap.main()
