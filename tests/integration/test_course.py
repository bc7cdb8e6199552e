"""The course's scripts, which are not part of this project: COURSE_SCRIPTS names their folder."""
import os
import pathlib
import unittest

import tap
from cluster import run

try:
    from fleet import Script
    from fleet_case import FleetCase
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

FOLDER = os.environ.get("COURSE_SCRIPTS", "")
if MISSING is None and not FOLDER:
    MISSING = "the meson option course_scripts is empty"

# Line and reason of those that abort; under both profiles unless a class says otherwise.
ABORTS = {"ESI_ClaveInexistente": (3, "KEY_NOT_IDENTIFIED"),
          "ESI_ClaveNoTomada": (6, "KEY_NOT_LOCKED"),
          "ESI_ClaveLarga": (7, "KEY_TOO_LONG")}
# Take the same keys in opposite orders: not at the same time without a planner.
DEADLOCK = ("ESI_MilanesaCompleta", "ESI_MenuCompleto")


@unittest.skipIf(MISSING, MISSING)
class Classic(FleetCase):
    """Outcomes under the classic profile."""

    OPTIONS = ["--profile", "classic"]
    EXPECTED = ABORTS

    def setUp(self):
        self.cluster = self.fleet(instances="ab")
        self.paths = {path.name: path for path in sorted(pathlib.Path(FOLDER).glob("ESI_*"))}
        self.assertGreaterEqual(len(self.paths), 15)

    def run_scripts(self, *names):
        return Script(self.cluster.coordinator, [self.paths[name] for name in names]).wait()

    def assert_outcome(self, name, results):
        """Every line succeeded, or all before the one that aborts."""
        results = [r for r in results if r["outcome"] != "waiting"]
        lines = self.statements(name)
        if name not in self.EXPECTED:
            self.assertEqual([(r["line"], r["outcome"]) for r in results],
                             [(line, "ok") for line in lines], name)
            return
        line, reason = self.EXPECTED[name]
        self.assertEqual([r["line"] for r in results], [n for n in lines if n <= line], name)
        self.assertEqual({r["outcome"] for r in results[:-1]}, {"ok"}, name)
        self.assertEqual((results[-1]["outcome"], results[-1]["reason"]), ("failed", reason), name)

    def statements(self, name):
        text = self.paths[name].read_bytes().splitlines()
        return [i + 1 for i, line in enumerate(text) if line.strip() and line[:1] != b"#"]

    def last_sets(self, name):
        """Value of each key after the script, alone on an empty cluster."""
        values = {}
        end = self.EXPECTED.get(name, (1 << 30,))[0]
        for number, line in enumerate(self.paths[name].read_bytes().splitlines(), 1):
            words = line.split(b" ", 2)
            if number < end and words[0] == b"SET":
                values[words[1]] = words[2]
        return values

    def test_every_script_parses(self):
        result = run("redistinto-esi", "run", "--check", *self.paths.values())
        self.assertEqual((result.code, result.out, result.err), (0, b"", b""))

    def test_one_after_the_other(self):
        for name in self.paths:
            with self.subTest(script=name):
                script = self.run_scripts(name)
                self.assertEqual(script.code, 1 if name in self.EXPECTED else 0)
                self.assert_outcome(name, script.results)
                for key, value in self.last_sets(name).items():
                    self.assertEqual(self.cluster.status(key).value, value)
        for key in {key for name in self.paths for key in self.last_sets(name)}:
            self.assert_free(self.cluster, key)

    def test_c45_keys_before_the_long_one_were_set(self):
        script = self.run_scripts("ESI_ClaveLarga")
        self.assert_outcome("ESI_ClaveLarga", script.results)
        self.assertEqual([self.cluster.status(k).value for k in
                          (b"consola:ps4", b"consola:xboxone", b"consola:nintendoswitch")],
                         [b"Fifa", b"Forza", b"Pokemon"])
        self.assertEqual(self.cluster.status(b"consola:ps4").stored, False)

    def assert_concurrently(self, left_out):
        names = [name for name in self.paths if name != left_out]
        script = self.run_scripts(*names)
        self.assertEqual(script.code, 1)
        for name in names:
            self.assert_outcome(name, [r for r in script.results
                                       if pathlib.Path(r["script"]).name == name])
        keys = self.cluster.cli("keys", "-o", "json").json()["keys"]
        for key in keys:
            self.assert_free(self.cluster, key["key"].encode())
        placed = {name: sum(key["owner"] == name for key in keys) for name in "ab"}
        self.assertLessEqual(abs(placed["a"] - placed["b"]), 1)  # Equitable Load, no evictions

    def test_all_but_one_at_once(self):
        self.assert_concurrently(DEADLOCK[0])

    def test_all_but_the_other_at_once(self):
        self.assert_concurrently(DEADLOCK[1])


class Default(Classic):
    """Keys may be longer."""

    OPTIONS = []
    EXPECTED = {name: end for name, end in ABORTS.items() if name != "ESI_ClaveLarga"}


@unittest.skipIf(MISSING, MISSING)
class KeyExplicit(FleetCase):
    """Where the keys of the course go by their first letter."""

    def test_c15_two_instances(self):
        cluster = self.fleet("--profile", "classic", "--distribution", "key-explicit",
                             instances="ab")
        for name in ("ESI_Bar1", "ESI_MultiClave", "ESI_MultiReemplazo"):
            Script(cluster.coordinator, [pathlib.Path(FOLDER) / name]).wait()
        owners = {key["key"]: key["owner"] for key in
                  cluster.cli("keys", "-o", "json").json()["keys"] if key["owner"]}
        for prefix, owner in (("bebida", "a"), ("microsoft", "a"), ("nintendo", "b"), ("sony", "b")):
            found = [key for key in owners if key.startswith(prefix)]
            self.assertTrue(found, prefix)
            self.assertEqual({owners[key] for key in found}, {owner}, prefix)


class EntryCase(FleetCase):
    """What is in which entry of instance a of the cluster."""

    def contents(self):
        """By index; a free entry is None."""
        shown = self.cluster.cli("entries", "a", "-o", "json").json()
        parts = [None] * shown["total"]
        for entry in shown["entries"]:
            value = self.cluster.status(entry["key"].encode()).value
            parts[entry["index"]] = value[entry["offset"]:entry["offset"] + entry["bytes"]]
        return parts


@unittest.skipIf(MISSING, MISSING)
class EntryMaps(EntryCase):
    """What is in which of 8 entries of 10 bytes, replaced by CIRC."""

    def setUp(self):
        self.cluster = self.fleet(instances="a", instance_options=["--entries", "8",
                                                                   "--entry-size", "10"])

    def run_until(self, name, last):
        """The script up to this line."""
        text = (pathlib.Path(FOLDER) / name).read_text(encoding="ascii")
        script = self.cluster.esi(text[:text.index(last)] + last + "\n")
        self.assertEqual(script.code, 0)

    def test_c59_nothing_is_replaced_at_wiiu(self):
        self.run_until("ESI_MultiReemplazo", "SET nintendo:consola:wiiu RIP")
        self.assertEqual(self.contents()[0], b"Mario")
        self.assertNotIn(None, self.contents())

    def test_c56_multi_reemplazo(self):
        self.run_until("ESI_MultiReemplazo", "SET sony:consola:ps3 TLOU")
        self.assertEqual(self.contents(), [b"FF8", b"GodOfWar", b"TLOU", b"FinalFanta",
                                           b"syTactics", b"MarioGalax", b"y2", b"RIP"])

    def test_c66_compactador(self):
        self.run_until("ESI_Compactador1", "SET opcion3 pizzadepalmitos")
        self.assertIn(None, self.contents())
        self.run_until("ESI_Compactador1", "SET opcion4 pizzadecantimpalo")
        self.assertEqual(self.contents(), [b"napolitana", b"grande", b"promomuzza", b"rella",
                                           b"pizzadepal", b"mitos", b"pizzadecan", b"timpalo"])


@unittest.skipIf(MISSING, MISSING)
class ClassicCompaction(EntryCase):
    """The classic profile, under which every instance compacts."""

    def test_c66_c68_compactador(self):
        self.cluster = self.fleet(
            "--profile", "classic", "--distribution", "key-explicit", instances="ab",
            instance_options=["--profile", "classic", "--entries", "8", "--entry-size", "10"])
        text = (pathlib.Path(FOLDER) / "ESI_Compactador1").read_bytes().replace(b"opcion", b"a")
        self.assertEqual(self.cluster.esi(text).code, 0)
        self.assertEqual(self.contents(), [b"napolitana", b"grande", b"promomuzza", b"rella",
                                           b"pizzadepal", b"mitos", b"pizzadecan", b"timpalo"])
        for name in "ab":
            with self.cluster.owner(name) as owner:
                self.assertEqual(owner.status().n_compactions, 1, name)


if __name__ == "__main__":
    tap.main()
