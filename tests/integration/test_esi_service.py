"""`redistinto-esi serve` and `redistinto esi`: the planner and its console over real sessions. Orders
are read from what the service prints and from its answers, never from time."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import tap
from cluster import DEADLINE_S, Service, binary, run, wait_until

try:
    from fleet import Fleet
    from fleet_case import FleetCase
    from test_shell import Terminal
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

NOBODY = "127.0.0.1:1"  # a port that nobody may listen on
LONG = 60000  # lines that are not over before anything else happens


class Serve:
    """A service with what it printed; its results come as JSON on a pipe of their own."""

    def __init__(self, coordinator, *options):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="redistinto-esi-"))
        self.service = Service("redistinto-esi", "serve", "--coordinator", coordinator, "--listen",
                               "127.0.0.1:0", "-o", "json", *options, directory=self.directory)
        self.coordinator = coordinator

    def wait_ready(self):
        self.service.wait_ready()
        self.address = self.service.address
        return self

    def cli(self, *words, timeout="30s", code=0):
        """The answer of one action, as JSON."""
        result = run("redistinto", "esi", "--coordinator", self.coordinator, "--esi", self.address,
                     "--timeout", timeout, "-o", "json", *words)
        if result.code != code:
            raise AssertionError(f"{words}: {result.code} {result.out} {result.err}\n"
                                 f"{self.service.logged()}")
        return result.json()

    def submit(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="ascii")
        return self.cli("submit", path)["id"]

    def esis(self, *key):
        return {esi["id"]: esi for esi in self.cli("list", *key)["esis"]}

    def wait_state(self, number, state):
        return wait_until(lambda: (lambda esi: esi if esi["state"] == state else None)(
            self.esis()[number]), f"ESI {number} is {state}")

    def lines(self):
        """(number of the ESI, line, outcome) of each result, in their order."""
        found = []
        for text in self.service.logged().splitlines():
            if text.startswith("{"):
                result = json.loads(text)
                found.append((int(result["script"].split("/")[0]), result["line"],
                              result["outcome"]))
        return found

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.service.pid, signal.SIGKILL)
        self.service.wait_exit()
        shutil.rmtree(self.directory, ignore_errors=True)


@unittest.skipIf(MISSING, MISSING)
class ServeCase(FleetCase):
    """One fleet for all; each test has a service of its own."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Fleet("--profile", "classic", instances="ab"))

    def serve(self, *options):
        serve = Serve(self.cluster.coordinator, *options)
        self.addCleanup(serve.close)
        return serve.wait_ready()

    def status(self, key):
        return self.cluster.status(key.encode())

    def assert_all_free(self, *keys):
        self.assert_free(self.cluster, *(key.encode() for key in keys))


class Planning(ServeCase):
    """Who runs when."""

    def test_c95_planning_begins_when_an_esi_connects_unless_paused(self):
        serve = self.serve("--planner", "fifo", "--paused")
        first = serve.submit("first.esi", "GET c95:a\nSET c95:a 1\nSTORE c95:a\n")
        second = serve.submit("second.esi", "GET c95:b\nSET c95:b 2\nSTORE c95:b\n")
        serve.wait_state(first, "ready")
        serve.wait_state(second, "ready")
        listed = serve.cli("list")
        self.assertEqual((listed["planner"], listed["paused"]), ("fifo", True))
        self.assertEqual(serve.lines(), [])
        self.assertFalse(self.status("c95:a").known)
        self.assertEqual(serve.cli("continuar"), {"paused": False})
        self.assertEqual(serve.cli("wait", str(second))["end"], "ok")
        self.assertEqual(serve.lines(), [(first, 1, "ok"), (first, 2, "ok"), (first, 3, "ok"),
                                         (second, 1, "ok"), (second, 2, "ok"),
                                         (second, 3, "ok")])
        third = serve.submit("third.esi", "GET c95:c\nSTORE c95:c\n")
        self.assertEqual(serve.cli("wait", str(third))["ok"], 2)

    def test_one_that_fails_leaves_its_locks_to_the_others(self):
        serve = self.serve("--planner", "fifo", "--paused")
        fails = serve.submit("fails.esi", "GET left\nSET nowhere 1\nSTORE left\n")
        waits = serve.submit("waits.esi", "GET left\nSTORE left\n")
        serve.cli("continue")
        ended = serve.cli("wait", str(fails), code=1)
        self.assertEqual((ended["end"], ended["line"], ended["reason"]),
                         ("failed", 2, "KEY_NOT_IDENTIFIED"))
        self.assertEqual(serve.cli("wait", str(waits))["end"], "ok")
        self.assertEqual([line for line in serve.lines() if line[0] == fails],
                         [(fails, 1, "ok"), (fails, 2, "failed")])

    def test_parallel_is_the_default(self):
        serve = self.serve()
        self.assertEqual(serve.cli("list")["planner"], "parallel")
        numbers = [serve.submit(f"{i}.esi", "GET par\nSET par v\nSTORE par\n") for i in range(8)]
        for number in numbers:
            self.assertEqual(serve.cli("wait", str(number))["end"], "ok")
        self.assertEqual(sorted(serve.esis()), numbers)

    def test_places_of_esis_that_ended_are_used_again(self):
        serve = self.serve("--planner", "hrrn")
        for _ in range(12):
            number = serve.submit("again.esi", "GET again\nSTORE again\n")
            self.assertEqual(serve.cli("wait", str(number))["end"], "ok")


class Console(ServeCase):
    """The actions, by the numbers of their cases."""

    def blocked_on(self, serve, key):
        """An ESI that waits for the key at its first line."""
        number = serve.submit("waiter.esi", f"GET {key}\nSET {key} mine\nSTORE {key}\n")
        serve.wait_state(number, "blocked")
        return number

    def test_c76_block_gives_a_free_key(self):
        serve = self.serve("--planner", "fifo", "--paused")
        number = serve.submit("c76.esi", "GET c76:own\nSTORE c76:own\n")
        serve.wait_state(number, "ready")
        self.assertEqual(serve.cli("bloquear", "c76:k", str(number))["state"], "ready")
        self.assertEqual(self.status("c76:k").holder, "c76.esi")
        serve.cli("continue")
        self.assertEqual(serve.cli("wait", str(number))["ok"], 2)
        self.assert_all_free("c76:k")

    def test_c77_block_on_a_held_key_queues(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c77:k")
        waiter = self.blocked_on(serve, "c77:k")
        serve.cli("pause")
        other = serve.submit("other.esi", "GET c77:own\nSTORE c77:own\n")
        serve.wait_state(other, "ready")
        self.assertEqual(serve.cli("block", "c77:k", str(other))["state"], "blocked")
        self.assertEqual(list(serve.esis("c77:k")), [waiter, other])
        serve.cli("continue")
        self.assertEqual(serve.cli("unblock", "c77:k"),
                         {"key": "c77:k", "woken": waiter, "waiting": 1})

    def test_c77_a_running_one_is_blocked_after_its_line(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c77r:k")
        number = serve.submit("running.esi", "GET c77r:a\n" + "SET c77r:a v\n" * LONG)
        wait_until(serve.lines, "it has begun")
        answer = serve.cli("block", "c77r:k", str(number))
        self.assertEqual((answer["state"], answer["waits_for"]), ("blocked", "c77r:k"))
        self.assertEqual(len(serve.lines()), answer["ok"])
        # Made ready it goes on behind its line.
        serve.cli("unblock", "c77r:k")
        wait_until(lambda: len(serve.lines()) > answer["ok"], "it goes on")
        self.assertEqual(serve.cli("kill", str(number))["end"], "killed")
        self.assertEqual([line[1] for line in serve.lines()],
                         list(range(1, len(serve.lines()) + 1)))

    def test_c78_block_of_one_that_cannot_be(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c78:k")
        waiter = self.blocked_on(serve, "c78:k")
        done = serve.submit("done.esi", "GET c78:own\nSTORE c78:own\n")
        serve.cli("wait", str(done))
        before = serve.esis()
        for number, reason, code in ((waiter, "ESI_STATE", 4), (done, "ESI_STATE", 4),
                                     (999, "ESI_UNKNOWN", 3)):
            error = serve.cli("block", "c78:x", str(number), code=code)["error"]
            self.assertEqual((error["reason"], error["applied"]), (reason, "NO"))
            self.assertTrue(error["message"])
        self.assertEqual(serve.esis(), before)
        self.assertFalse(self.status("c78:x").known)

    def test_c79_unblock_makes_the_first_waiter_ready_and_the_key_stays_held(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c79:k")
        first = self.blocked_on(serve, "c79:k")
        second = self.blocked_on(serve, "c79:k")
        serve.cli("pause")
        self.assertEqual(serve.cli("desbloquear", "c79:k"),
                         {"key": "c79:k", "woken": first, "waiting": 1})
        self.assertEqual(serve.esis()[first]["state"], "ready")
        self.assertEqual(self.status("c79:k").holder, "system")
        serve.cli("continue")
        serve.wait_state(first, "blocked")
        self.assertEqual(list(serve.esis("c79:k")), [first, second])
        # Once for each that waits, and once more for the lock: then both get it in their order.
        serve.cli("pause")
        self.assertEqual(serve.cli("unblock", "c79:k")["woken"], first)
        self.assertEqual(serve.cli("unblock", "c79:k")["woken"], second)
        self.assertEqual(serve.cli("unblock", "c79:k"),
                         {"key": "c79:k", "woken": None, "waiting": 0})
        serve.cli("continue")
        self.assertEqual(serve.cli("wait", str(second))["end"], "ok")
        self.assertEqual(serve.cli("wait", str(first))["end"], "ok")
        self.assert_all_free("c79:k")

    def test_c81_unblock_of_an_unknown_key(self):
        serve = self.serve("--planner", "fifo")
        error = serve.cli("unblock", "c81:nobody", code=3)["error"]
        self.assertEqual(error["reason"], "KEY_NOT_IDENTIFIED")

    def test_c82_kill_frees_locks_and_readies_the_first_waiter(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c82:gate")
        victim = serve.submit("victim.esi", "GET c82:k\nSET c82:k 1\nGET c82:gate\n")
        serve.wait_state(victim, "blocked")
        waiters = [self.blocked_on(serve, "c82:k"), self.blocked_on(serve, "c82:k")]
        killed = serve.cli("kill", str(victim))
        self.assertEqual((killed["state"], killed["end"]), ("finished", "killed"))
        for number in waiters:
            self.assertEqual(serve.cli("wait", str(number))["end"], "ok")
        got = [line[0] for line in serve.lines() if line[1:] == (1, "ok") and line[0] in waiters]
        self.assertEqual(got, waiters)

    def test_c82_a_running_one_ends_after_its_line(self):
        serve = self.serve("--planner", "fifo")
        number = serve.submit("running.esi", "GET c82r\n" + "SET c82r v\n" * LONG)
        wait_until(serve.lines, "it has begun")
        killed = serve.cli("kill", str(number))
        self.assertEqual(killed["end"], "killed")
        lines = serve.lines()
        self.assertEqual(len(lines), killed["ok"])
        self.assertTrue(all(line[2] == "ok" for line in lines), lines[-3:])
        self.assert_all_free("c82r")
        self.assertEqual(serve.cli("kill", str(number), code=4)["error"]["reason"], "ESI_STATE")

    def test_c83_c84_status_is_the_coordinators(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c83:k")
        waiter = self.blocked_on(serve, "c83:k")
        status = serve.cli("status", "c83:k")
        self.assertEqual((status["value"], status["owner"], status["holder"], status["waiters"]),
                         (None, None, "system", ["waiter.esi"]))
        self.assertIn(status["would_place"], ("a", "b"))
        self.assertEqual(serve.esis()[waiter]["state"], "blocked")

    def test_c83_status_waits_for_no_delay(self):
        """Fewer lines are over, of 10 s each, than status was asked meanwhile."""
        cluster = self.fleet("--delay-ms", 10000, instances="")
        serve = Serve(cluster.coordinator, "--planner", "fifo")
        self.addCleanup(serve.close)
        serve.wait_ready()
        number = serve.submit("long.esi", "GET c83:long\n" * LONG)
        serve.wait_state(number, "running")
        for _ in range(4):
            self.assertIsNone(serve.cli("status", "c83:long", timeout="60s")["value"])
        esi = serve.esis()[number]
        self.assertEqual(esi["state"], "running")
        self.assertLess(esi["ok"], 4)

    def test_c86_deadlock_has_those_in_circles_and_no_others(self):
        serve = self.serve("--planner", "fifo", "--blocked", "c86:1,c86:2")
        one = serve.submit("one.esi", "GET c86:x\nGET c86:1\nGET c86:y\n")
        serve.wait_state(one, "blocked")
        two = serve.submit("two.esi", "GET c86:y\nGET c86:2\nGET c86:x\n")
        serve.wait_state(two, "blocked")
        outside = self.blocked_on(serve, "c86:x")
        self.assertEqual(serve.cli("deadlock"), {"esis": []})
        for key, number in (("c86:1", one), ("c86:2", two)):
            serve.cli("pause")
            serve.cli("unblock", key)
            serve.cli("unblock", key)
            serve.cli("continue")
            wait_until(lambda n=number: serve.esis()[n]["line"] == 3 and
                       serve.esis()[n]["state"] == "blocked", f"{number} waits at its last line")
        found = serve.cli("deadlock")["esis"]
        self.assertEqual([esi["id"] for esi in found], [one, two])
        self.assertEqual([esi["waits_for"] for esi in found], ["c86:y", "c86:x"])
        serve.cli("kill", str(two))
        self.assertEqual(serve.cli("deadlock"), {"esis": []})
        self.assertEqual(serve.cli("wait", str(one))["end"], "ok")
        self.assertEqual(serve.cli("wait", str(outside))["end"], "ok")

    def test_lines_from_a_pipe(self):
        serve = self.serve("--planner", "fifo")
        done = subprocess.run(
            [binary("redistinto"), "--coordinator", self.cluster.coordinator, "esi", "console",
             "--esi", serve.address], input=b"pausar\n\n# a remark\nlistar\nfly\nstatus pipe:k\n"
                                            b"quit now\nquit\npause\n",
            capture_output=True, check=False, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], "paused")
        self.assertIn("planner fifo, paused", lines)
        self.assertIn("locked by    (nobody)", lines)
        self.assertEqual(lines.count("paused"), 1)
        self.assertIn("unknown action 'fly'", done.stderr.decode())
        self.assertIn("nothing comes behind help or quit", done.stderr.decode())


class OnATerminal(ServeCase):
    """The console as a person has it."""

    PROMPT = "esi> "

    def terminal(self, serve):
        terminal = Terminal(self.cluster.coordinator, "console", "--esi", serve.address,
                            home=serve.directory, verb="esi")
        self.addCleanup(terminal.close)
        terminal.wait_for(self.PROMPT)
        return terminal

    def test_completion_interrupt_and_history(self):
        serve = self.serve("--planner", "fifo")
        terminal = self.terminal(serve)
        terminal.type("dead\t\r")
        terminal.wait_for("no deadlock")
        terminal.wait_for(self.PROMPT)
        terminal.type("kill 1")
        terminal.wait_for("kill 1")
        terminal.type("\x03")
        terminal.wait_for("^C")
        terminal.wait_for(self.PROMPT)
        terminal.type("listar\r")
        terminal.wait_for("planner fifo")
        terminal.wait_for(self.PROMPT)
        terminal.type("fly\r")
        terminal.wait_for("unknown action 'fly'")
        terminal.wait_for(self.PROMPT)
        terminal.type("quit\r")
        self.assertEqual(terminal.wait_end(), 0)
        kept = serve.directory / ".local/state/redistinto/esi-history"
        self.assertIn("listar", kept.read_text(encoding="utf-8"))
        again = self.terminal(serve)
        again.type("\x10\x10\x10\r")  # quit, fly, listar
        again.wait_for("planner fifo")
        again.wait_for(self.PROMPT)
        again.type("\x04")
        self.assertEqual(again.wait_end(), 0)


class Life(ServeCase):
    """Starting, stopping, and what stands in the way."""

    def test_sigterm_ends_the_scripts_and_frees_all_locks(self):
        serve = self.serve("--planner", "fifo", "--blocked", "life:k,life:l")
        number = serve.submit("life.esi", "GET life:own\nGET life:k\n")
        serve.wait_state(number, "blocked")
        self.assertEqual(self.status("life:own").holder, "life.esi")
        self.assertEqual(self.status("life:l").holder, "system")
        self.assertEqual(serve.service.stop(), 0)
        self.assert_all_free("life:own", "life:k", "life:l")
        self.assertEqual(list(self.status("life:k").waiters), [])

    def test_a_key_that_cannot_be_blocked_keeps_it_from_serving(self):
        done = run("redistinto-esi", "serve", "--coordinator", self.cluster.coordinator, "--listen",
                   "127.0.0.1:0", "--blocked", "k" * 41)
        self.assertEqual((done.code, done.out), (5, b""))
        self.assertIn("redistinto-esi: --blocked: ", done.err.decode())

    def test_no_coordinator_for_the_blocked_keys(self):
        done = run("redistinto-esi", "serve", "--coordinator", NOBODY, "--listen", "127.0.0.1:0",
                   "--blocked", "k", "--timeout", "500ms")
        self.assertEqual(done.code, 5, done.err)

    def test_usage(self):
        for words, said in ((["--planner", "lifo"], "sjf-cd"), (["--alpha", "2"], "0 to 1"),
                            (["a.esi"], "after serve"), (["--blocked", ","], "0 bytes")):
            done = run("redistinto-esi", "serve", *words)
            self.assertEqual((done.code, done.out), (2, b""), words)
            self.assertIn(said, done.err.decode())

    def test_a_script_with_an_error(self):
        serve = self.serve()
        path = serve.directory / "wrong.esi"
        path.write_text("GET k\nSET k\n", encoding="ascii")
        error = serve.cli("submit", path, code=2)["error"]
        self.assertEqual((error["reason"], error["applied"]), ("INVALID_FIELD", "NO"))
        self.assertIn("2:6", error["message"])


if __name__ == "__main__":
    tap.main()
