"""The verb shell, from a pipe and on a terminal."""
import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

import tap
from cluster import DEADLINE_S, Cluster, binary, run, wait_until

VALUE_MAX = 1024 * 1024
LINE_MAX = VALUE_MAX + 255 + 16 + 1024
PROMPT = "redistinto> "


class Terminal:
    """A shell whose input and output are a pseudo-terminal; errors too."""

    def __init__(self, coordinator, *options, home, verb="shell"):
        ours, theirs = pty.openpty()
        self.fd, self.seen, self.at = ours, "", 0
        environment = {**os.environ, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        environment.pop("XDG_STATE_HOME", None)
        self.process = subprocess.Popen(
            [binary("redistinto"), "--coordinator", coordinator, verb, *options], stdin=theirs,
            stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
        os.close(theirs)

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def wait_for(self, text):
        """What came before it, and after what was waited for last."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.seen[self.at:]:
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"no '{text}' behind {self.seen!r}")
        begin, self.at = self.at, self.seen.index(text, self.at) + len(text)
        return self.seen[begin:self.at - len(text)]

    def _read(self):
        if not select.select([self.fd], [], [], 1)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def wait_end(self):
        """Reads to the end; the exit status."""
        end = time.monotonic() + DEADLINE_S
        while self._read():
            if time.monotonic() > end:
                raise AssertionError(f"goes on after {self.seen!r}")
        return self.process.wait(timeout=DEADLINE_S)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


class ShellCase(unittest.TestCase):
    """One cluster for all tests of a class."""

    OPTIONS = []

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(*cls.OPTIONS, instances=2))

    def shell(self, text, *options, **keywords):
        """From a pipe, to its end."""
        data = text if isinstance(text, bytes) else text.encode()
        return subprocess.run(
            [binary("redistinto"), "--coordinator", self.cluster.coordinator, "shell", *options],
            input=data, capture_output=True, timeout=DEADLINE_S, check=False, **keywords)

    def start(self, *options, before=()):
        """From a pipe that stays open."""
        process = subprocess.Popen(
            [*before, binary("redistinto"), "--coordinator", self.cluster.coordinator, "shell", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def say(self, process, line):
        """One line, and the answer to it as JSON."""
        process.stdin.write(line.encode() + b"\n")
        return json.loads(process.stdout.readline())

    def terminal(self, *options):
        home = self.cluster.directory / self.id()
        home.mkdir(exist_ok=True)
        terminal = Terminal(self.cluster.coordinator, *options, home=home)
        self.addCleanup(terminal.close)
        terminal.wait_for(PROMPT)
        return terminal

    def holder(self, key):
        return self.cluster.cli("status", key, "-o", "json").json()["holder"]

    def wait_free(self, key):
        """Well before the session's lease would have run out."""
        wait_until(lambda: self.holder(key) is None, f"{key} is free", deadline_s=5)


class Piped(ShellCase):
    """No prompt, no redrawing; each line is answered with its number."""

    def test_statements(self):
        done = self.shell("# all of them\nGET a\nset a one two\nSTORE a\nREAD a\n\n"
                          "PUT b \xf1\nDEL b\n")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout)
        lines = done.stdout.decode().splitlines()
        for line, pattern in zip(lines, (
                r"2: ok version=none owner=none lock_token=\d+ no value",
                r"3: ok version=\S+ stored=no owner=instance-\d epoch=\d+",
                r"4: ok version=\S+ stored=yes owner=instance-\d epoch=\d+",
                r"5: ok version=\S+ stored=yes owner=instance-\d epoch=\d+ value=one two",
                r"7: ok version=\S+ stored=yes owner=instance-\d epoch=\d+",
                r"8: ok version=none owner=\S+.*")):
            self.assertRegex(line, f"^{pattern}$")
        self.assertEqual(len(lines), 6)

    def test_as_json(self):
        done = self.shell("PUT j v\nGET j\nsession\nhelp\nGETS\nREAD nowhere\nquit\nREAD j\n",
                          "-o", "json", "--name", "person")
        self.assertEqual((done.returncode, done.stderr), (1, b""))
        put, get, session, help_, unknown, failed = map(json.loads, done.stdout.splitlines())
        self.assertEqual((put["line"], put["outcome"], put["stored"]), (1, "ok", True))
        self.assertEqual((get["key"], get["value"]), ("j", "v"))
        self.assertGreater(get["lock_token"], 0)
        self.assertEqual((session["name"], session["alive"]), ("person", True))
        self.assertIn("PUT key value", help_["help"])
        self.assertEqual(unknown["error"]["code"], "INVALID_ARGUMENT")
        self.assertEqual((failed["line"], failed["outcome"], failed["error"]["reason"]),
                         (6, "failed", "KEY_NOT_IDENTIFIED"))

    def test_failure_does_not_end_it(self):
        done = self.shell("STORE nowhere\nPUT after 1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(),
                         r"^1: failed: .*\(NOT_FOUND KEY_NOT_IDENTIFIED\)\n2: ok .*\n$")

    def test_escaped(self):
        self.assertEqual(self.shell("PUT e\\x00 \\x0a\\\\\n", "-e").returncode, 0)
        self.assertEqual(self.cluster.cli("read", "-e", r"e\x00").out, b"\n\\")
        done = self.shell("READ e\\x00\n", "--escaped")
        self.assertIn(rb"value=\x0a\\", done.stdout)

    def test_values_at_the_limit(self):
        value = b"x" * VALUE_MAX
        done = self.shell(b"PUT long " + value + b"\nREAD long", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stdout[:200])
        self.assertEqual(json.loads(done.stdout.splitlines()[1])["value"], value.decode())
        done = self.shell(b"PUT long " + value + b"x\nPUT s 1\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"1: failed: ", done.stdout)
        self.assertIn(b"2: ok ", done.stdout)

    def test_lines_at_the_limit(self):
        """What is too long is skipped to its end, with and without a newline behind it."""
        statement = b"PUT blanks v"
        fits = b" " * (LINE_MAX - len(statement)) + statement
        done = self.shell(fits + b"\n" + fits)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.shell(b" " + fits + b"\n" + b"x" * (4 * LINE_MAX) + b"\nPUT s 2\n " + fits)
        self.assertEqual(done.returncode, 1)
        too_long = f"failed: a line has at most {LINE_MAX} bytes .*\n"
        self.assertRegex(done.stdout.decode(),
                         f"^1: {too_long}2: {too_long}3: ok .*\n4: {too_long}$")

    def test_locks_end_with_it(self):
        process = self.start("-o", "json")
        self.assertGreater(self.say(process, "GET held")["lock_token"], 0)
        self.assertEqual(self.holder("held"), "redistinto-shell")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)
        self.wait_free("held")

    def test_session_for_other_commands(self):
        process = self.start("-o", "json")
        session = self.say(process, "session")["session_id"]
        self.assertEqual(self.cluster.cli("get", "shared", "--session", session).code, 0)
        self.assertEqual(self.say(process, "PUT shared v")["outcome"], "ok")
        self.assertIsNone(self.holder("shared"))

    def test_interrupted_while_waiting(self):
        first = self.start("-o", "json", "--name", "first")
        self.say(first, "GET wait")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            second = self.start()
            second.stdin.write(b"GET also\nGET wait\nGET never\n")
            second.stdout.readline()
            self.assertEqual(second.stderr.readline(),
                             b"redistinto: shell: waiting for the lock that 'first' holds\n")
            second.send_signal(number)
            self.assertEqual(second.wait(timeout=DEADLINE_S), 130)
            self.assertRegex(second.stdout.read(), rb"^2: failed: .*\(CANCELLED.*\)\n$")
            self.assertEqual(
                self.cluster.cli("status", "wait", "-o", "json").json()["waiters"], [])
            self.wait_free("also")

    def test_interrupted_between_lines(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            process = self.start("-o", "json")
            self.say(process, "GET between")
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=DEADLINE_S), 130)
            self.assertIsNone(self.holder("between"))

    def test_hangup_that_is_ignored(self):
        """As nohup starts it: it goes on."""
        process = self.start("-o", "json", before=["sh", "-c", 'trap "" HUP; exec "$@"', "sh"])
        self.assertEqual(self.say(process, "GET nohup")["outcome"], "ok")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.say(process, "PUT nohup v")["outcome"], "ok")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)

    def test_end_that_nobody_confirms(self):
        """Nobody can say that the locks are free."""
        first, second = self.start("-o", "json"), self.start("-o", "json")
        self.say(first, "GET unheard")
        second.stdin.write(b"GET unheard\n")
        self.assertIn(b"waiting for the lock", second.stderr.readline())
        self.cluster.pause("coordinator")
        self.addCleanup(self.cluster.resume, "coordinator")
        second.send_signal(signal.SIGINT)
        self.assertRegex(second.stderr.readline(),
                         rb"the session was closed; the coordinator has not confirmed that, so its "
                         rb"locks may be held until the lease of \d+ ms has run out there, and the "
                         rb"remaining lines are not run\n$")
        self.assertEqual(second.wait(timeout=DEADLINE_S), 130)

    def test_turn_comes(self):
        first, second = self.start("-o", "json"), self.start("-o", "json")
        self.say(first, "GET turn")
        second.stdin.write(b"GET turn\n")
        self.assertIn(b"waiting for the lock", second.stderr.readline())
        self.say(first, "PUT turn mine")
        self.assertEqual(json.loads(second.stdout.readline())["value"], "mine")

    def test_session_closed_by_others(self):
        """The rest of the lines is not run in a session that the user does not know."""
        process = self.start("-o", "json")
        session = self.say(process, "session")["session_id"]
        self.cluster.cli("session", "close", session)
        self.assertRegex(process.stderr.readline(),
                         rb"shell: the session was lost: .*; its locks are free, and the remaining "
                         rb"lines are not run\n$")
        self.assertEqual(process.wait(timeout=DEADLINE_S), 1)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [binary("redistinto"), "--coordinator", self.cluster.coordinator, "shell"],
                input=b"PUT full 1\nPUT full 2\n", stdout=full, stderr=subprocess.PIPE,
                timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"writing the result", done.stderr)
        self.assertEqual(self.cluster.cli("read", "full").out, b"1")

    def test_input_that_cannot_be_read(self):
        directory = os.open(self.cluster.directory, os.O_RDONLY)
        try:
            done = subprocess.run(
                [binary("redistinto"), "--coordinator", self.cluster.coordinator, "shell"],
                stdin=directory, capture_output=True, timeout=DEADLINE_S, check=False)
        finally:
            os.close(directory)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"reading standard input", done.stderr)


class WithoutCluster(unittest.TestCase):
    """No session comes about."""

    def test_no_coordinator(self):
        result = run("redistinto", "--coordinator", "127.0.0.1:1", "--timeout", "500ms", "shell")
        self.assertEqual((result.code, result.out), (5, b""))
        # Refused, or out of time in one of the attempts.
        self.assertRegex(result.err.decode(), r"^redistinto: shell: (127\.0\.0\.1:1: |"
                                              r"no answer from 127\.0\.0\.1:1 within )")

    def test_usage(self):
        for arguments in (["shell", "x"], ["shell", "--name", ""], ["shell", "--name", "a b"]):
            self.assertEqual(run("redistinto", *arguments).code, 2, arguments)


class OnATerminal(ShellCase):
    """Prompt, editing, history, and Ctrl-C that ends a statement."""

    def test_statements(self):
        terminal = self.terminal()
        terminal.type("PUT typed v\r")
        terminal.wait_for("ok version=")
        terminal.wait_for(PROMPT)
        terminal.type("READ typed\r")
        terminal.wait_for(" value=v\r\n")
        terminal.wait_for(PROMPT)
        terminal.type("nonsense\r")
        terminal.wait_for("failed: at column 1")
        terminal.wait_for(PROMPT)
        terminal.type("quit\r")
        self.assertEqual(terminal.wait_end(), 0)

    def test_bytes_that_are_no_character(self):
        """They are dropped, and nothing else is: the end of the line least of all."""
        terminal = self.terminal()
        for line in (b"PUT odd a\xc3\n", b"PUT odd \xffa\n", b"PUT odd \xe2\x82a\n",
                     b"PUT odd \x16\x00a\n"):
            terminal.type(line)
            terminal.wait_for("ok version=")
            terminal.wait_for(PROMPT)
            self.assertEqual(self.cluster.cli("read", "odd").out, b"a", line)

    def test_completion(self):
        terminal = self.terminal()
        terminal.type("REA\tnone\r")
        terminal.wait_for("KEY_NOT_IDENTIFIED")
        terminal.wait_for(PROMPT)
        terminal.type("ses\t\r")
        terminal.wait_for("name=redistinto-shell")
        terminal.wait_for(PROMPT)
        terminal.type("\x04")
        self.assertEqual(terminal.wait_end(), 0)

    def test_history(self):
        for text, answer in (("PUT history 1\r", "ok version"), ("\x10\r", "ok version")):
            terminal = self.terminal()
            terminal.type(text)
            terminal.wait_for(answer)
            terminal.wait_for(PROMPT)
            terminal.type("\x04")
            self.assertEqual(terminal.wait_end(), 0)
        path = (self.cluster.directory / self.id() /
                ".local/state/redistinto/history")
        self.assertEqual(path.stat().st_mode & 0o077, 0)
        self.assertIn("PUT", path.read_text(encoding="utf-8"))

    def test_interrupt_at_the_prompt(self):
        """Discards what was typed, and keeps the session."""
        terminal = self.terminal()
        terminal.type("GET prompt\r")
        terminal.wait_for("lock_token=")
        terminal.wait_for(PROMPT)
        terminal.type("nonsense")
        terminal.wait_for("nonsense")
        terminal.type("\x03")
        terminal.wait_for("^C")
        terminal.wait_for(PROMPT)
        self.assertEqual(self.holder("prompt"), "redistinto-shell")
        terminal.type("session\r")
        terminal.wait_for("lease=")
        terminal.wait_for(PROMPT)
        os.kill(terminal.process.pid, signal.SIGTERM)
        self.assertEqual(terminal.wait_end(), 130)
        self.wait_free("prompt")

    def test_interrupt_of_a_statement(self):
        """Leaves nothing locked; the next statement begins a new session."""
        first, second = self.terminal("--name", "first"), self.terminal()
        first.type("GET busy\r")
        first.wait_for("lock_token=")
        second.type("GET mine\r")
        second.wait_for("lock_token=")
        second.wait_for(PROMPT)
        second.type("GET busy\r")
        second.wait_for("waiting for the lock that 'first' holds")
        second.type("\x03")
        second.wait_for("the next statement begins a new one")
        second.wait_for(PROMPT)
        self.wait_free("mine")
        second.type("PUT mine v\r")
        second.wait_for("ok version=")

    def test_session_lost_while_typing(self):
        """Told at once; what was typed stays and runs in the next session."""
        terminal = self.terminal()
        terminal.type("session\r")
        terminal.wait_for("session ")
        session = terminal.wait_for(" name=").split()[-1]
        terminal.wait_for(PROMPT)
        terminal.type("PUT lost kept")
        terminal.wait_for("PUT lost kept")
        self.assertEqual(self.cluster.cli("session", "close", session).code, 0)
        terminal.wait_for("the session was lost")
        terminal.wait_for(PROMPT)
        terminal.type("\r")
        terminal.wait_for("ok version=")
        self.assertEqual(self.cluster.cli("read", "lost").out, b"kept")


if __name__ == "__main__":
    tap.main()
