"""redistinto-esi as a command: exit codes, output, errors, signals."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from xml.etree import ElementTree

import tap
from cluster import binary, run, wait_until

try:
    from fleet import Fleet, Script
    from fleet_case import FleetCase
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase

NOBODY = "127.0.0.1:1"  # a port that nobody may listen on


class WithoutCoordinator(unittest.TestCase):
    """What needs no service."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def path(self, name, text):
        path = self.directory / name
        path.write_bytes(text.encode())
        return path

    def run_esi(self, *arguments, **keywords):
        return run("redistinto-esi", "run", "--coordinator", NOBODY, *arguments, **keywords)

    def test_parse_error_says_where(self):
        path = self.path("wrong.esi", "GET a\n\n# fine\nSET a\nPUSH b 1\n")
        for arguments in ([path], ["--check", path], ["-o", "json", path]):
            result = self.run_esi(*arguments)
            self.assertEqual((result.code, result.out), (2, b""), arguments)
            lines = result.err.decode().splitlines()
            self.assertTrue(lines[0].startswith(f"{path}:4:6: "), lines)
            self.assertEqual((lines[1], lines[2]), ("    SET a", "         ^"))
            self.assertTrue(lines[3].startswith(f"{path}:5:1: "), lines)
            self.assertEqual((lines[4], lines[5]), ("    PUSH b 1", "    ^"))

    def test_one_wrong_script_keeps_the_others_from_running(self):
        good, wrong = self.path("good.esi", "GET a\n"), self.path("wrong.esi", "FETCH a\n")
        result = self.run_esi(good, wrong)
        self.assertEqual((result.code, result.out), (2, b""))
        self.assertIn(f"{wrong}:1:1: ", result.err.decode())
        self.assertNotIn(str(good), result.err.decode())

    def test_check_only_parses(self):
        path = self.path("good.esi", "GET a\nSET a 1\nSTORE a\n")
        result = self.run_esi("--check", path)
        self.assertEqual((result.code, result.out, result.err), (0, b"", b""))

    def test_usage(self):
        path = self.path("good.esi", "GET a\n")
        for arguments, said in ((["run"], "at least one script"), ([], "run SCRIPT"),
                                (["walk", path], "walk"), (["run", "--bogus", path], "--bogus"),
                                (["run", "-o", "xml", path], "json"),
                                (["run", "--timeout", "0", path], "1ms..1h"),
                                (["run", self.directory / "absent.esi"], "absent.esi"),
                                (["run", self.directory], str(self.directory))):
            result = run("redistinto-esi", *arguments)
            self.assertEqual((result.code, result.out), (2, b""), arguments)
            self.assertIn(said, result.err.decode(), arguments)

    def test_script_from_standard_input(self):
        done = subprocess.run([binary("redistinto-esi"), "run", "--check", "-"], input=b"GET\n",
                              capture_output=True, check=False, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"-:1:4: ", done.stderr)

    def test_reports_that_cannot_be_written_keep_everything_from_running(self):
        path = self.path("good.esi", "GET a\n")
        for option in ("--report", "--junit"):
            for name, said in ((self.directory, "is a directory"),
                               (self.directory / "absent" / "x", "absent"),
                               ("/dev/null", "is no regular file")):
                result = self.run_esi(option, name, path)
                self.assertEqual((result.code, result.out), (2, b""), result.err)
                self.assertIn(f"{option[2:]}: ", result.err.decode())
                self.assertIn(said, result.err.decode())
        result = self.run_esi("--report", "same", "--junit", "same", path)
        self.assertEqual(result.code, 2)
        self.assertIn("both 'same'", result.err.decode())
        self.assertEqual(os.listdir(self.directory), ["good.esi"])

    def test_reports_without_a_coordinator(self):
        path = self.path("good.esi", "GET a\nSTORE a\n")
        report, junit = self.directory / "r.json", self.directory / "j.xml"
        result = self.run_esi("--timeout", "300ms", "--report", report, "--junit", junit,
                              "--seed", "9", path)
        self.assertEqual(result.code, 5, result.err)
        script, = json.loads(report.read_text())["scripts"]
        self.assertEqual((script["name"], script["state"], script["statements"], script["ok"],
                          script["line"], script["seed"]),
                         (str(path), "session_lost", 2, 0, 0, 9))
        self.assertIn(script["code"], ("UNAVAILABLE", "DEADLINE_EXCEEDED"))
        suite, = ElementTree.parse(junit).getroot()
        self.assertEqual([case.get("name") for case in suite.iter("testcase")],
                         ["1: GET a", "2: STORE a", "session"])
        self.assertEqual((suite.get("errors"), suite.get("skipped")), ("1", "2"))
        self.assertEqual(sorted(os.listdir(self.directory)), ["good.esi", "j.xml", "r.json"])

    def test_a_report_for_which_there_is_no_room(self):
        path = self.path("good.esi", "GET a\n")
        done = subprocess.run(
            ["prlimit", "--fsize=10", binary("redistinto-esi"), "run", "--coordinator", NOBODY,
             "--timeout", "300ms", "--report", self.directory / "r.json", path],
            capture_output=True, check=False, timeout=60, restore_signals=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"writing ", done.stderr)
        self.assertEqual(os.listdir(self.directory), ["good.esi"])

    def test_no_coordinator_within_the_timeout(self):
        path = self.path("good.esi", "GET a\nSET a 1\n")
        for options in (["-o", "json"], []):
            started = time.monotonic()
            result = self.run_esi("--timeout", "700ms", *options, path)
            took = time.monotonic() - started
            self.assertEqual(result.code, 5, result.err)
            self.assertLess(took, 20.0)  # without the option it is 30 s
        self.assertRegex(result.out, rb"UNAVAILABLE|DEADLINE_EXCEEDED")
        self.assertIn(NOBODY.encode(), result.out)

    def test_silent_coordinator_within_the_timeout(self):
        path = self.path("good.esi", "GET a\n")
        with socket.create_server(("127.0.0.1", 0)) as peer:
            started = time.monotonic()
            result = run("redistinto-esi", "run", "--coordinator",
                         f"127.0.0.1:{peer.getsockname()[1]}", "--timeout", "700ms", path)
            self.assertEqual(result.code, 5, result.err)
            self.assertLess(time.monotonic() - started, 20.0)

    def test_interrupt_before_anybody_answered(self):
        path = self.path("good.esi", "GET a\n")
        with socket.create_server(("127.0.0.1", 0)) as peer:
            for number in (signal.SIGINT, signal.SIGTERM):
                process = subprocess.Popen(
                    [binary("redistinto-esi"), "run", "--timeout", "1m", "--coordinator",
                     f"127.0.0.1:{peer.getsockname()[1]}", path],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                connection = peer.accept()[0]
                started = time.monotonic()
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), 130)
                connection.close()
                self.assertLess(time.monotonic() - started, 20.0)  # the timeout is 1 min


@unittest.skipIf(MISSING, MISSING)
class WithCoordinator(FleetCase):
    """One fleet for all, with a short session lease."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Fleet("--session-lease", "5s", instances="ab"))

    def test_exit_0_and_fields(self):
        script = self.assert_ok(self.cluster.esi("GET f\nSET f v\nSTORE f\n", "fields.esi"))
        self.assertEqual(script.err, "")
        for number, (result, statement) in enumerate(zip(script.results, ("GET", "SET", "STORE"))):
            self.assertEqual(list(result)[:4], ["script", "line", "statement", "key"])
            self.assertLessEqual({"outcome", "code", "reason", "instance", "epoch", "latency_us"},
                                 set(result))
            self.assertEqual((result["script"], result["line"], result["statement"],
                              result["key"]),
                             (str(self.cluster.directory / "fields.esi"), number + 1, statement,
                              "f"))
            self.assertEqual((result["outcome"], result["code"], result["reason"]),
                             ("ok", "OK", ""))
            self.assertGreaterEqual(result["latency_us"], 0)
        self.assertEqual((script.results[0]["instance"], script.results[0]["epoch"]), ("", 0))
        self.assertEqual(script.results[1]["epoch"], self.cluster.status(b"f").epoch)

    def test_exit_1_and_fields_of_a_failure(self):
        script = self.cluster.esi("GET g\nSET nowhere v\nSTORE g\n")
        result = self.assert_aborts(script, 2, "KEY_NOT_IDENTIFIED")
        self.assertEqual((result["code"], result["instance"], result["epoch"]),
                         ("NOT_FOUND", "", 0))
        self.assertTrue(result["message"])

    def test_report_and_junit(self):
        report, junit = self.cluster.directory / "r.json", self.cluster.directory / "j.xml"
        paths = []
        for name, text in (("works.esi", "REPEAT 3\nPUT rep:${i} <${i}>&\"\x01\nEND\n"
                                         "SLEEP 1\nREAD rep:2\nEXPECT <2>&\"\x01\n"),
                           ("fails.esi", "GET rep:f\nSET rep:nowhere v\nSTORE rep:f\n")):
            paths.append(self.cluster.directory / name)
            paths[-1].write_text(text, encoding="ascii")
        script = Script(self.cluster.coordinator, paths, "--report", report, "--junit", junit)
        self.assertEqual(script.wait().code, 1)
        works, fails = json.loads(report.read_text())["scripts"]
        self.assertEqual({**works, "duration_us": 0, "seed": 0, "attempts": 0},
                         {"name": str(paths[0]), "state": "ok", "statements": 6, "ok": 6,
                          "waits": 0, "sets_lost": 0, "attempts": 0, "line": 0, "round": 0,
                          "code": "OK", "reason": "", "message": "", "lock_lost": False,
                          "duration_us": 0, "seed": 0})
        self.assertGreaterEqual(works["attempts"], 4)
        self.assertGreaterEqual(works["duration_us"], 1000)
        self.assertEqual((fails["state"], fails["line"], fails["code"], fails["reason"],
                          fails["ok"]), ("failed", 2, "NOT_FOUND", "KEY_NOT_IDENTIFIED", 1))
        self.assertEqual(works["seed"], fails["seed"])
        self.assertGreater(works["seed"], 0)

        suites = ElementTree.parse(junit).getroot()
        self.assertEqual([suites.get(name) for name in ("tests", "failures", "errors", "skipped")],
                         ["7", "1", "0", "1"])
        cases = [case for suite in suites for case in suite.iter("testcase")]
        self.assertEqual([case.get("name") for case in cases],
                         ['2: PUT rep:${i} "<${i}>&\\"\\x01"', "4: SLEEP 1", "5: READ rep:2",
                          '6: EXPECT "<2>&\\"\\x01"', "1: GET rep:f",
                          '2: SET rep:nowhere "v"', "3: STORE rep:f"])
        self.assertEqual([[child.tag for child in case] for case in cases],
                         [[], [], [], [], [], ["failure"], ["skipped"]])
        failure = cases[5].find("failure")
        self.assertEqual(failure.get("type"), "NOT_FOUND KEY_NOT_IDENTIFIED")
        self.assertTrue(failure.get("message"))
        if shutil.which("xmllint"):
            subprocess.run(["xmllint", "--noout", junit], check=True, timeout=60)

    def test_a_reader_that_is_slow_gets_everything(self):
        script = self.cluster.script("GET slow\nREPEAT 3000\nSET slow ${i}\nEND\nSTORE slow\n",
                                     "slow.esi")
        self.addCleanup(script.kill)
        # Results that are not read wait, and so does the script when there are many of them.
        wait_until(lambda: int(self.cluster.status(b"slow").value or b"0") >= 1024,
                   "more results than the script may be ahead")
        self.assert_ok(script.wait())
        self.assertEqual([r["round"] for r in script.results if r["statement"] == "SET"],
                         list(range(1, 3001)))

    def test_reports_after_an_interrupt(self):
        report = self.cluster.directory / "int.json"
        script = self.cluster.script("PUT rep:int v\nSLEEP 3600000\n", "sleeps.esi", "--report",
                                     report)
        self.addCleanup(script.kill)
        script.wait_line(1)
        script.signal(signal.SIGINT)
        self.assertEqual(script.wait().code, 130)
        told, = json.loads(report.read_text())["scripts"]
        self.assertEqual((told["state"], told["line"], told["ok"], told["reason"]),
                         ("aborted", 2, 1, "CANCELLED"))

    def test_text_output(self):
        path = self.cluster.directory / "text.esi"
        path.write_text("GET t\nSET t one two\nSTORE t\nSET t:nowhere v\n", encoding="ascii")
        result = run("redistinto-esi", "run", "--coordinator", self.cluster.coordinator, path)
        self.assertEqual((result.code, result.err), (1, b""))
        lines = result.text().splitlines()
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[1], rf'^{path}:2: SET t "one two" ok instance=[ab] epoch=\d+ ')
        self.assertRegex(lines[3], rf"^{path}:4: SET t:nowhere .* failed NOT_FOUND "
                                   "KEY_NOT_IDENTIFIED: ")
        self.assertRegex(lines[4], rf"^{path}: failed, 3 of 4 statements.*; ended at line 4; ")
        self.assertNotIn("\x1b", result.text())

    def test_worst_of_several_scripts_is_told(self):
        paths = []
        for name, text in (("ok.esi", "GET several:a\nSTORE several:a\n"),
                           ("fails.esi", "SET several:b v\n")):
            paths.append(self.cluster.directory / name)
            paths[-1].write_text(text, encoding="ascii")
        script = Script(self.cluster.coordinator, paths).wait()
        self.assertEqual(script.code, 1)
        self.assertEqual({(r["script"], r["outcome"]) for r in script.results},
                         {(str(paths[0]), "ok"), (str(paths[1]), "failed")})

    def test_twenty_scripts_on_one_key(self):
        paths = []
        for i in range(20):
            paths.append(self.cluster.directory / f"one{i}.esi")
            paths[-1].write_text(f"GET one\nSET one {i}\nSTORE one\n", encoding="ascii")
        script = Script(self.cluster.coordinator, paths).wait()
        self.assert_ok(script)
        done = [r for r in script.results if r["outcome"] == "ok"]
        self.assertEqual(len(done), 60)
        gets = sorted((r for r in done if r["statement"] == "GET"), key=lambda r: r["lock_token"])
        self.assertEqual(len({r["lock_token"] for r in gets}), 20)
        owners = [pathlib.Path(r["script"]).stem.removeprefix("one") for r in gets]
        seen = [r.get("value") for r in gets]
        self.assertEqual(seen, [None, *owners[:-1]])  # each saw what the one before had stored
        self.assertEqual(self.cluster.status(b"one").value, owners[-1].encode())

    def test_sigint_frees_the_locks_at_once(self):
        gatekeeper = self.session(self.cluster, "gatekeeper")
        gatekeeper.get(b"int:gate")
        for number in (signal.SIGINT, signal.SIGTERM):
            script = self.cluster.script("GET int\nSET int v\nGET int:gate\n", "int.esi")
            self.addCleanup(script.kill)
            script.wait_line(3, "waiting")
            self.assertEqual(self.cluster.status(b"int").holder, "int.esi")
            script.signal(number)
            self.assertEqual(script.wait().code, 130)
            wait_until(lambda: self.cluster.status(b"int").holder == "", "its lock is free",
                       deadline_s=2)  # its lease is 5 s
            self.assertEqual(list(self.cluster.status(b"int:gate").waiters), [])
            self.assertEqual(script.outcomes()[-1][:2], (3, "failed"))

    def test_output_that_cannot_be_written(self):
        path = self.cluster.directory / "output.esi"
        path.write_text("GET output\nSET output v\n" * 50 + "STORE output\n", encoding="ascii")
        read_end, write_end = os.pipe()
        os.close(read_end)
        for stdout in (os.open("/dev/full", os.O_WRONLY), write_end):
            done = subprocess.run(
                [binary("redistinto-esi"), "run", "--coordinator", self.cluster.coordinator, path],
                stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=20)
            os.close(stdout)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stderr.count(b"redistinto-esi: writing the results: "), 1)
            self.assertEqual(self.cluster.status(b"output").stored, False)
            wait_until(lambda: self.cluster.status(b"output").holder == "", "its lock is free",
                       deadline_s=2)  # its lease is 5 s

    def test_session_is_named_after_the_script(self):
        gatekeeper = self.session(self.cluster, "gatekeeper")
        gatekeeper.get(b"named:gate")
        script = self.cluster.script("GET named:gate\n", "a script ñ.esi")
        self.addCleanup(script.kill)
        script.wait_line(1, "waiting")
        self.assertEqual(list(self.cluster.status(b"named:gate").waiters), ["a_script___.esi"])

    def test_coordinator_from_the_environment(self):
        path = self.cluster.directory / "environment.esi"
        path.write_text("GET env\n", encoding="ascii")
        result = run("redistinto-esi", "run", path,
                     env={"REDISTINTO_COORDINATOR": self.cluster.coordinator,
                          "REDISTINTO_OUTPUT": "json"})
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(json.loads(result.out)["key"], "env")

    def test_coordinator_that_dies_and_comes_back_meanwhile(self):
        gatekeeper = self.session(self.cluster, "gatekeeper")
        token = gatekeeper.get(b"back:gate").lock_token
        script = self.cluster.script("GET back\nSET back v\nGET back:gate\nSTORE back\n")
        self.addCleanup(script.kill)
        script.wait_line(3, "waiting")
        held = script.of_line(1)["lock_token"]
        self.cluster.kill("coordinator")
        self.cluster.start_coordinator()
        self.assertEqual(self.cluster.status(b"back").holder, "script.esi")
        gatekeeper.channel.close()
        opener = self.cluster.session("opener")
        self.addCleanup(opener.abandon)
        opener.id = gatekeeper.id
        opener.client_id, opener.seq = gatekeeper.client_id, gatekeeper.seq
        opener.store(b"back:gate", token)
        self.assert_ok(script.wait())
        self.assertGreater(held, 0)
        self.assertEqual(self.cluster.status(b"back").value, b"v")


if __name__ == "__main__":
    tap.main()
