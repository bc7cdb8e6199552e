"""`redistinto-esi run --planner`: the order of lines, as its trace tells it."""
import json
import signal
import unittest

import tap
from cluster import run

try:
    from fleet import Fleet, Script
    from fleet_case import FleetCase
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

# Of the shape of the course's planning test.
FILMS = """GET film1
GET film2
SET film1 a
SET film2 b
STORE film1
GET film3
GET film1
SET film1 c
SET film1 d
STORE film2
SET film3 e
STORE film3
"""
SERIES = """GET lead1
GET lead2
SET lead1 a
SET lead1 b
SET lead2 c
GET lead3
STORE lead1
SET lead3 d
STORE lead2
GET lead4
SET lead4 e
STORE lead4
STORE lead3
"""
WINTER = """GET lead1
GET lead2
SET lead1 x
SET lead2 y
STORE lead1
STORE lead2
"""
LINES = "GET {0}\nSET {0} v\nSTORE {0}\n"


@unittest.skipIf(MISSING, MISSING)
class Planner(FleetCase):
    """One fleet for all; keys differ from test to test. A waiter keeps its turn however slow the
    machine is."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Fleet("--wake-hold", "5m", instances="ab"))

    def start(self, texts, *options):
        """Scripts named A, B, C … with a trace."""
        paths = []
        for name, text in zip("ABCDEF", texts):
            paths.append(self.cluster.directory / f"{name}.esi")
            paths[-1].write_text(text, encoding="ascii")
        script = Script(self.cluster.coordinator, paths, "--trace", *options)
        self.addCleanup(script.kill)
        return script

    def run_all(self, texts, *options, code=0):
        script = self.start(texts, *options).wait()
        self.assertEqual(script.code, code, (script.err, script.results))
        return script

    @staticmethod
    def name(result):
        return result["script"][-len("A.esi")]

    def order(self, script):
        """A letter a line: who ran it."""
        return "".join(self.name(r) for r in script.results if "line" in r)

    def events(self, script, *kinds):
        return [(self.name(r), r["event"], r["clock"], r["estimate"]) for r in script.results
                if r.get("event") in kinds]

    def test_c87_sjf_cd_trace_of_the_course(self):
        script = self.run_all([FILMS, SERIES, WINTER], "--planner", "sjf-cd", "--alpha", "0.5",
                              "--initial-estimate", "3", "--blocked", "film2,lead3,film3,lead4")
        self.assertEqual(self.order(script),
                         "AA" "BBBBBB" "C" "AAAAA" "BB" "CC" "BBB" "CCCCC" "AAAAAAA" "BBBB")
        self.assertEqual([(name, estimate) for name, _, _, estimate in
                          self.events(script, "ready")],
                         [("A", 3), ("B", 3), ("C", 3), ("A", 2.5), ("B", 4.5), ("C", 2),
                          ("C", 2), ("A", 3.75), ("B", 4.75)])
        self.assertEqual(self.events(script, "preempted"), [("B", "preempted", 16, 2.5)])
        self.assertEqual([name for name, *_ in self.events(script, "finished")], ["C", "A", "B"])
        self.assertEqual(script.err, "")

    def test_the_same_without_preemption(self):
        texts = [text.replace("film", "sd-film").replace("lead", "sd-lead")
                 for text in (FILMS, SERIES, WINTER)]
        script = self.run_all(texts, "--planner", "sjf-sd", "--initial-estimate", "3",
                              "--blocked", "sd-film2,sd-lead3,sd-film3,sd-lead4")
        self.assertEqual(self.order(script),
                         "AA" "BBBBBB" "C" "AAAAA" "BBBBB" "CCCCCC" "AAAAAAA" "BBBB")
        self.assertEqual(self.events(script, "preempted"), [])

    def test_fifo_runs_each_to_its_end(self):
        texts = [LINES.format(f"fifo{i}") for i in range(4)]
        self.assertEqual(self.order(self.run_all(texts, "--planner", "fifo")), "AAABBBCCCDDD")

    def test_hrrn_runs_who_waited_longest_for_its_size(self):
        texts = ["GET hrrn\nSET hrrn v\nSTORE hrrn\n", LINES.format("hrrn1"), LINES.format("hrrn2")]
        script = self.run_all(texts, "--planner", "hrrn", "--blocked", "hrrn")
        # All wait for as long as the others ran: B and C, equal, in their order; A last.
        self.assertEqual(self.order(script), "ABBBCCCAAA")

    def test_trace_without_planner(self):
        script = self.run_all([LINES.format("par1"), LINES.format("par2")])
        self.assertEqual(sorted(self.order(script)), list("AAABBB"))
        self.assertEqual({name for name, *_ in self.events(script, "running")}, {"A", "B"})

    def test_c38_a_script_that_fails_leaves_its_locks_to_the_others(self):
        texts = ["GET fails\nSET fails a\nSET nowhere v\n", "GET fails\nSET fails b\nSTORE fails\n"]
        script = self.run_all(texts, "--planner", "fifo", code=1)
        self.assertEqual(self.order(script), "AAABBB")
        self.assertEqual({r["outcome"] for r in script.results if "line" in r and
                          self.name(r) == "B"}, {"ok"})  # it never finds the lock held
        self.assertEqual(self.cluster.status(b"fails").value, b"b")

    def test_c48_only_the_first_waiter_is_ready_and_runs_its_get_again(self):
        wants = "GET three\nSET three {}\nSTORE three\n"
        texts = ["GET three\nGET three:gate\nSTORE three\nSTORE three:gate\n",
                 wants.format("b"), wants.format("c"), wants.format("d")]
        script = self.run_all(texts, "--planner", "fifo", "--blocked", "three:gate")
        self.assertEqual(self.order(script), "AA" "B" "C" "D" "AAA" "BBB" "CCC" "DDD")
        ready = self.events(script, "ready")[4:]
        self.assertEqual([(name, clock) for name, _, clock, _ in ready],
                         [("A", 5), ("B", 7), ("C", 11), ("D", 14)])
        self.assertEqual(self.cluster.status(b"three").value, b"d")

    def test_blocked_keys_are_locks_of_a_session_named_system(self):
        gatekeeper = self.session(self.cluster, "gatekeeper")
        token = gatekeeper.get(b"foreign").lock_token
        script = self.start(["GET foreign\nGET sys\nSTORE sys\nSTORE foreign\n"], "--planner",
                            "fifo", "--blocked", "sys,sys:unused")
        script.wait_event("blocked")
        self.assertEqual(self.cluster.status(b"sys").holder, "system")
        self.assertEqual(self.cluster.status(b"sys:unused").holder, "system")
        self.assertEqual(list(self.cluster.status(b"foreign").waiters), ["A.esi"])
        gatekeeper.store(b"foreign", token)
        self.assertEqual(script.wait().code, 0, script.results)
        self.assertEqual(self.order(script), "AAAAAA")
        for key in (b"sys", b"sys:unused", b"foreign"):
            self.assertEqual(self.cluster.status(key).holder, "")

    def test_c86_a_deadlock_is_told_and_an_interrupt_frees_the_locks(self):
        cycle = ["GET {0}1\nGET {0}gate1\nGET {0}2\n", "GET {0}2\nGET {0}gate2\nGET {0}1\n"]
        texts = [text.format(name) for name in ("drink", "dish") for text in cycle]
        script = self.start([*texts, "GET drink1\n"], "--planner", "fifo", "--blocked",
                            "drinkgate1,drinkgate2,dishgate1,dishgate2")
        said = script.process.stderr.readline().decode()
        paths = [str(self.cluster.directory / f"{name}.esi") for name in "ABCD"]
        self.assertEqual(said.split(), ["redistinto-esi:", "deadlock:", *paths])
        script.signal(signal.SIGINT)
        self.assertEqual(script.wait().code, 130)
        for key in (b"drink1", b"drink2", b"dish1", b"dish2"):
            self.assertEqual(self.cluster.status(key).holder, "")

    def test_blocked_keys_that_cannot_be_locked(self):
        path = self.cluster.directory / "never.esi"
        path.write_text(LINES.format("never"), encoding="ascii")
        result = run("redistinto-esi", "run", "--coordinator", "127.0.0.1:1", "--timeout", "500ms",
                     "--blocked", "k", path)
        self.assertEqual((result.code, result.out), (5, b""))
        self.assertIn(b"--blocked: ", result.err)

    def test_no_coordinator(self):
        path = self.cluster.directory / "nobody.esi"
        path.write_text(LINES.format("nobody"), encoding="ascii")
        result = run("redistinto-esi", "run", "--coordinator", "127.0.0.1:1", "--timeout", "500ms",
                     "--planner", "fifo", "-o", "json", "--trace", path)
        self.assertEqual(result.code, 5, result.err)
        self.assertEqual([json.loads(line)["event"] for line in result.out.splitlines()],
                         ["finished"])


if __name__ == "__main__":
    tap.main()
