"""What all verbs have in common, each by a row of its own: help, JSON, exit codes. A verb of the
list that has no row is a failure, so whoever adds one says here what it prints."""
import json
import re
import shlex
import signal
import socket
import subprocess
import unittest

import tap
from cluster import DEADLINE_S, ROOT, Cluster, binary, run

ERROR_MEMBERS = ["code", "reason", "message", "applied"]
STATEMENT = ["statement", "outcome", "key"]
VERSION = ["version", "stored", "sets_lost", "owner", "epoch"]
STATUS = ["key", "known", "value", "stored", "version", "owner", "owner_state", "epoch",
          "would_place", "holder", "waiters", "value_unavailable"]
READ = [*STATEMENT, "value", "version", "stored", "stale", "sets_lost", "owner", "epoch"]

# Verb -> arguments, what it is given on standard input, members of the JSON of its (first) line.
ROWS = {
    "dev": (["--base-port", "0", "--instances", "1"], None,
            ["coordinator", "coordinator_pid", "pid", "data_dir", "instances", "esi", "esi_pid",
             "profile", "distribution", "rules"]),
    "get": (["k"], None, [*STATEMENT, "value", *VERSION, "lock_token"]),
    "set": (["k", "v"], None, [*STATEMENT, *VERSION, "evicted"]),
    "store": (["k"], None, [*STATEMENT, *VERSION, "lock_lost"]),
    "put": (["k", "v"], None, [*STATEMENT, *VERSION, "lock_lost", "evicted"]),
    "read": (["k"], None, READ),
    "del": (["gone"], None, [*STATEMENT, *VERSION]),
    "session": (["open"], None, ["session_id", "name", "lease_ms"]),
    "shell": ([], b"READ k\n", ["line", *READ]),
    "esi": (["status", "k"], None, STATUS),
    "status": (["k"], None, STATUS),
    "keys": ([], None, ["keys"]),
    "instances": ([], None, ["instances"]),
    "entries": (["instance-1"], None,
                ["instance", "entries", "pointer", "free", "total", "entry_size"]),
    "distribution": ([], None, ["distribution", "configured"]),
    "unlock": (["k"], None, ["key", "holder"]),
    "health": ([], None, ["members", "serving"]),
    "bench": (["--keys", "5", "--operations", "20"], None,
              ["operations", "rate", "seconds", "interrupted", "not_begun", "empty_reads",
               "errors", "latency_us", "read", "update"]),
    "completion": (["bash"], None, ["shell", "script"]),
}
GO_ON = ("dev", "session") # until they are interrupted, and then succeed
ALONE = ("dev", "completion") # ask no coordinator
CHANGE_AT_ONCE = ("unlock",) # the first that they send may have been done


def words_of(line):
    """Without remarks and what the shell does with them."""
    return shlex.split(re.split(r" [<>|]", line)[0], comments=True)


def examples(program, *arguments):
    """The command lines that the help shows, as words."""
    lines = run(program, *arguments, "--help").text().partition("\nExamples:\n")[2]
    for line in re.findall(r"^  (\S.*)$", lines.partition("\n\n")[0], re.M):
        yield line, words_of(line)


class Help(unittest.TestCase):
    """The list, the help of each verb, and its examples."""

    def test_each_verb_has_a_row(self):
        shown = run("redistinto").text().partition("\nVerbs:\n")[2]
        self.assertEqual(re.findall(r"^  (\w+) +\w", shown, re.M), list(ROWS))

    def test_help(self):
        for verb in ROWS:
            for flag in ("--help", "-h"):
                result = run("redistinto", verb, flag)
                self.assertEqual((result.code, result.err), (0, b""), verb)
                for text in (f"Usage: redistinto {verb} [OPTION...]", "\nExamples:\n",
                             "--coordinator", "--timeout", "--output", "[cli]"):
                    self.assertIn(text, result.text(), verb)

    def test_examples_of_each_verb_are_understood(self):
        for verb in ROWS:
            shown = list(examples("redistinto", verb))
            self.assertTrue(shown, verb)
            for line, words in shown:
                self.assertEqual(words[:2], ["redistinto", verb])
                result = run(*words, "--print-config")
                self.assertEqual((result.code, result.err), (0, b""), line)

    def test_examples_of_each_binary_are_understood(self):
        for program in ("redistinto", "redistinto-coordinator", "redistinto-instance",
                        "redistinto-esi"):
            shown = list(examples(program))
            self.assertTrue(shown, program)
            for line, words in shown:
                self.assertEqual(words[0], program)
                result = run(*words, "--print-config")
                self.assertEqual((result.code, result.err), (0, b""), line)


class Page(unittest.TestCase):
    """docs/command-line.md."""

    TEXT = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    def test_every_verb_is_in_its_table(self):
        table = self.TEXT.partition("| verb | does |")[2].partition("\n\n")[0]
        named = [verb for line in table.splitlines()
                 for verb in re.findall(r"`(\w+)`", line.split("|")[1] if line else "")]
        self.assertEqual(sorted(named), sorted(ROWS))

    def test_its_examples_are_understood(self):
        lines = [line for block in re.findall(r"```sh\n(.*?)```", self.TEXT, re.S)
                 for line in block.splitlines() if line.startswith("redistinto ")]
        self.assertGreater(len(lines), 5)
        for line in lines:
            result = run(*words_of(line), "--print-config")
            self.assertEqual((result.code, result.err), (0, b""), line)


class ErrorsPage(unittest.TestCase):
    """docs/errors.md."""

    def test_every_reason_has_a_reaction(self):
        table = (ROOT / "runtime" / "model" / "reason.h").read_text(encoding="utf-8")
        reasons = re.findall(r"^    REASON\((\w+), RT_", table, re.M)
        self.assertGreater(len(reasons), 30)
        told = set(re.findall(r"\w+", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")))
        self.assertEqual(set(reasons) - told, {"NONE"})


class Usage(unittest.TestCase):
    """Exit code 2, before anything is asked of anybody."""

    def refused(self, *arguments):
        result = run("redistinto", *arguments)
        self.assertEqual((result.code, result.out), (2, b""), arguments)
        self.assertRegex(result.err.decode(),
                         rf"^redistinto: {arguments[0]}: .*\(INVALID_ARGUMENT\)\n$")
        result = run("redistinto", *arguments, "-o", "json")
        self.assertEqual((result.code, result.err), (2, b""), arguments)
        self.assertEqual(list(result.json()), ["error"])
        self.assertEqual(list(result.json()["error"]), ERROR_MEMBERS)
        self.assertEqual(result.json()["error"]["code"], "INVALID_ARGUMENT")

    def test_unknown_option(self):
        for verb, (arguments, _, _) in ROWS.items():
            self.refused(verb, *arguments, "--bogus")

    def test_too_many_words(self):
        for verb, (arguments, _, _) in ROWS.items():
            self.refused(verb, *arguments, "one", "two")

    def test_missing_words(self):
        for verb, (arguments, _, _) in ROWS.items():
            if arguments and not arguments[0].startswith("-"):
                self.refused(verb)

    def test_common_options(self):
        for verb, (arguments, _, _) in ROWS.items():
            self.refused(verb, *arguments, "--timeout", "0")
            self.refused(verb, *arguments, "--timeout", "3600001ms")
            self.refused(verb, *arguments, "--coordinator", "nowhere")


class NobodyThere(unittest.TestCase):
    """A port that nobody listens on, and one whose listener never says anything."""

    def setUp(self):
        self.silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.silent.close)
        self.address = f"127.0.0.1:{self.silent.getsockname()[1]}"

    def rows(self):
        return ((verb, row) for verb, row in ROWS.items() if verb not in ALONE)

    def start(self, coordinator, verb, arguments, *options):
        process = subprocess.Popen(
            [binary("redistinto"), "--coordinator", coordinator, verb, *arguments, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_unavailable(self):
        for verb, (arguments, _, _) in self.rows():
            process = self.start("127.0.0.1:1", verb, arguments, "--timeout", "500ms")
            out, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 5, (verb, err))
            if verb != "health": # which tells it as its result
                self.assertEqual(out, b"", verb)
                self.assertRegex(err.decode(), rf"^redistinto: {verb}: .*\((UNAVAILABLE|"
                                               r"DEADLINE_EXCEEDED).*\)\n$")

    def test_timeout(self):
        for verb, (arguments, _, _) in self.rows():
            process = self.start(self.address, verb, arguments, "--timeout", "300ms", "-o", "json")
            out, err = process.communicate(timeout=DEADLINE_S)
            code = 8 if verb in CHANGE_AT_ONCE else 5
            self.assertEqual((process.returncode, err), (code, b""), (verb, out))
            answer = json.loads(out)
            if verb == "health":
                self.assertFalse(answer["serving"])
            else:
                self.assertEqual(list(answer["error"]), ERROR_MEMBERS, verb)
                self.assertIn(answer["error"]["code"], ("UNAVAILABLE", "DEADLINE_EXCEEDED"))

    def test_interrupted(self):
        for verb, (arguments, _, _) in self.rows():
            for number in (signal.SIGINT, signal.SIGTERM):
                process = self.start(self.address, verb, arguments, "--timeout", "1m")
                connection = self.silent.accept()[0]
                process.send_signal(number)
                out, err = process.communicate(timeout=DEADLINE_S)
                connection.close()
                self.assertEqual(process.returncode, 130, (verb, err))
                if verb not in ("health", "bench"): # which tell what they know so far
                    self.assertEqual(out, b"", verb)


class Answers(unittest.TestCase):
    """On a cluster that has the key k."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(instances=2))
        for key in ("k", "gone"):
            if cls.cluster.cli("put", key, "v").code != 0:
                raise AssertionError(f"{key} cannot be put")

    def start(self, verb, *options, stdout=subprocess.PIPE):
        arguments, given, _ = ROWS[verb]
        process = subprocess.Popen(
            [binary("redistinto"), "--coordinator", self.cluster.coordinator, verb, *arguments,
             *options], stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdin.write(given or b"")
        if verb not in GO_ON:
            process.stdin.close()
            process.stdin = None
        return process

    def finish(self, verb, process):
        """Its first line, and how it ended."""
        line = process.stdout.readline()
        if verb in GO_ON:
            process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=DEADLINE_S)
        return line, rest, err, process.returncode

    def test_json(self):
        for verb, (_, _, members) in ROWS.items():
            for options in (["-o", "json"], ["--output=json"]):
                if verb == "del":
                    self.cluster.cli("put", "gone", "v")
                line, rest, err, code = self.finish(verb, self.start(verb, *options))
                self.assertEqual((code, rest, err), (0, b"", b""), (verb, line))
                self.assertEqual(list(json.loads(line)), members, verb)

    def test_results_that_cannot_be_written(self):
        for verb in ROWS:
            if verb == "del":
                self.cluster.cli("put", "gone", "v")
            with open("/dev/full", "wb") as full:
                process = self.start(verb, stdout=full)
            _, err = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 1, (verb, err))
            self.assertIn(b"writing the result", err, verb)


if __name__ == "__main__":
    tap.main()
