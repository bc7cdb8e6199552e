"""What the statements of a script answer and what a line may look like: numbered cases.

Each class of statements runs under the classic profile and, where it has a sibling, again under the
default one with what differs there.
"""
import signal
import time
import unittest

import tap

try:
    from fleet import Fleet
    from fleet_case import FleetCase, puts
    MISSING = None
except unittest.SkipTest as skip:
    MISSING, FleetCase = str(skip), unittest.TestCase
except ImportError as missing:
    MISSING, FleetCase = f"python3 module {missing.name} is missing", unittest.TestCase


class Shared(FleetCase):
    """Cases that leave nothing behind share one fleet."""

    OPTIONS = ["--profile", "classic"]

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(
            Fleet(*cls.OPTIONS, instances="ab",
                  instance_options=["--entries", "100", "--entry-size", "10"]))

    def holder(self, name="holder"):
        session = self.cluster.session(name)
        self.addCleanup(session.close)
        return session


@unittest.skipIf(MISSING, MISSING)
class Statements(Shared):
    """What GET, SET and STORE answer."""

    def test_c39_get_of_an_unknown_key(self):
        script = self.assert_ok(self.cluster.esi("GET c39\n"))
        result = script.of_line(1)
        self.assertEqual((result["instance"], result["epoch"]), ("", 0))
        self.assertGreater(result["lock_token"], 0)
        self.assertNotIn("value", result)
        status = self.cluster.status(b"c39")
        self.assertEqual((status.known, status.owner, status.holder), (True, "", ""))

    def test_c40_set_and_store_of_an_unknown_key(self):
        script = self.cluster.esi("GET c40\nSET c40 v\nSET c40:other v\n")
        result = self.assert_aborts(script, 3, "KEY_NOT_IDENTIFIED")
        self.assertEqual(result["code"], "NOT_FOUND")
        self.assertFalse(self.cluster.status(b"c40:other").known)
        self.assert_aborts(self.cluster.esi("STORE c40:other\n"), 1, "KEY_NOT_IDENTIFIED")
        self.assert_free(self.cluster, b"c40")

    def test_c41_set_of_a_key_of_another(self):
        holder = self.holder()
        token = holder.get(b"c41").lock_token
        holder.set(b"c41", b"mine", token)
        for statement in ("SET c41 v\n", "STORE c41\n"):
            result = self.assert_aborts(self.cluster.esi(statement), 1, "KEY_NOT_LOCKED")
            self.assertEqual(result["code"], "FAILED_PRECONDITION")
        self.assertEqual(self.cluster.status(b"c41").value, b"mine")
        self.assertEqual(self.cluster.status(b"c41").holder, "holder")

    def test_c41_set_of_a_free_key(self):
        self.assert_ok(self.cluster.esi(puts(["c41:free"])))
        self.assert_aborts(self.cluster.esi("SET c41:free v\n"), 1, "KEY_NOT_LOCKED")
        self.assert_aborts(self.cluster.esi("STORE c41:free\n"), 1, "KEY_NOT_LOCKED")
        self.assertEqual(self.cluster.status(b"c41:free").value, b"of c41:free")

    def test_c42_set_after_store(self):
        script = self.cluster.esi("GET c42\nSET c42 v\nSTORE c42\nSET c42 w\n")
        self.assert_aborts(script, 4, "KEY_NOT_LOCKED")
        self.assertEqual(self.cluster.status(b"c42").value, b"v")

    def test_c43_get_twice_by_the_holder(self):
        script = self.cluster.esi("GET c43\nGET c43\nSET c43 v\nGET c43\nSTORE c43\n")
        self.assert_ok(script)
        tokens = {r["lock_token"] for r in script.results if r["statement"] == "GET"}
        self.assertEqual(len(tokens), 1)
        self.assertEqual(script.of_line(4)["value"], "v")
        self.assertEqual(list(self.cluster.status(b"c43").waiters), [])
        self.assert_free(self.cluster, b"c43")

    def test_c44_key_of_40_and_41_bytes(self):
        self.assert_ok(self.cluster.esi(puts(["k" * 40])))
        result = self.assert_aborts(self.cluster.esi("GET first\nGET " + "k" * 41 + "\n"), 2,
                                    "KEY_TOO_LONG")
        self.assertEqual(result["code"], "INVALID_ARGUMENT")
        self.assertIn("40", result["message"])
        self.assert_free(self.cluster, b"first")

    def test_c44_bytes_are_counted_not_characters(self):
        self.assert_ok(self.cluster.esi("GET " + "ñ" * 20 + "\n"))
        self.assert_aborts(self.cluster.esi("GET " + "ñ" * 21 + "\n"), 1, "KEY_TOO_LONG")

    def test_c45_long_key_after_good_ones(self):
        script = self.cluster.esi("GET c45:a\nSET c45:a 1\nGET c45:b\nSET c45:b 2\n"
                                  "GET " + "c45:" + "x" * 41 + "\nSET c45:a 3\n")
        self.assert_aborts(script, 5, "KEY_TOO_LONG")
        self.assertEqual([self.cluster.status(k).value for k in (b"c45:a", b"c45:b")],
                         [b"1", b"2"])
        self.assert_free(self.cluster, b"c45:a", b"c45:b")

    def test_c46_store_of_a_key_never_set(self):
        script = self.assert_ok(self.cluster.esi("GET c46\nSTORE c46\n"))
        self.assertEqual(script.of_line(2)["instance"], "")
        status = self.cluster.status(b"c46")
        self.assertEqual((status.owner, status.holder), ("", ""))

    def test_c50_value_with_blanks(self):
        self.assert_ok(self.cluster.esi("GET c50\nSET c50 una frase  con   blancos\nSTORE c50\n"))
        self.assertEqual(self.cluster.cli("read", "c50").out, b"una frase  con   blancos")
        self.assert_ok(self.cluster.esi("GET c50\nSET c50  two before\nSTORE c50\n"))
        self.assertEqual(self.cluster.cli("read", "c50").out, b" two before")

    def test_c51_shrinking_frees_the_tail(self):
        session = self.holder()
        token = session.get(b"c51").lock_token
        three = session.set(b"c51", b"x" * 30, token)
        two = session.set(b"c51", b"x" * 20, token)
        self.assertEqual(two.instance, three.instance)
        self.assertEqual(two.key.entries_free, three.key.entries_free + 1)
        session.store(b"c51", token, two.key.version)
        owner = self.cluster.owner(two.instance)
        self.addCleanup(owner.close)
        self.assertEqual(owner.status().entries_free, two.key.entries_free)

    def test_c48_store_with_three_waiters(self):
        holder = self.holder()
        token = holder.get(b"c48").lock_token
        gate = holder.get(b"c48:gate").lock_token
        scripts = []
        for i in range(3):
            scripts.append(self.cluster.script("GET c48\nSET c48 by\nGET c48:gate\nSTORE c48\n",
                                               f"w{i}.esi"))
            self.addCleanup(scripts[-1].kill)
            scripts[-1].wait_line(1, "waiting")
        self.assertEqual(list(self.cluster.status(b"c48").waiters), ["w0.esi", "w1.esi", "w2.esi"])
        holder.store(b"c48", token)
        got = scripts[0].wait_line(1)
        self.assertGreater(got["lock_token"], token)
        scripts[0].wait_line(3, "waiting")
        status = self.cluster.status(b"c48")
        self.assertEqual((status.holder, list(status.waiters)), ("w0.esi", ["w1.esi", "w2.esi"]))
        holder.store(b"c48:gate", gate)
        for script in scripts:
            self.assert_ok(script.wait())
        tokens = [script.of_line(1)["lock_token"] for script in scripts]
        self.assertEqual(tokens, sorted(tokens))
        self.assert_free(self.cluster, b"c48", b"c48:gate")

    def test_d16_abort_frees_the_locks_and_wakes_the_first_waiter(self):
        holder = self.holder()
        gate = holder.get(b"d16:gate").lock_token
        aborts = self.cluster.script("GET d16\nSET d16 v\nGET d16:gate\nSET d16:nowhere v\n",
                                     "aborts.esi")
        self.addCleanup(aborts.kill)
        aborts.wait_line(3, "waiting")
        waiter = self.cluster.script("GET d16\nSTORE d16\n", "waiter.esi")
        self.addCleanup(waiter.kill)
        waiter.wait_line(1, "waiting")
        holder.store(b"d16:gate", gate)
        self.assert_aborts(aborts.wait(), 4, "KEY_NOT_IDENTIFIED")
        self.assert_ok(waiter.wait())
        self.assertEqual(waiter.of_line(1)["value"], "v")

    def test_c38_interrupted_esi_frees_its_locks_at_once(self):
        holder = self.holder()
        holder.get(b"c38:gate")
        script = self.cluster.script("GET c38\nSET c38 v\nGET c38:gate\n", "c38.esi")
        self.addCleanup(script.kill)
        script.wait_line(3, "waiting")
        started = time.monotonic()
        script.signal(signal.SIGINT)
        self.assertEqual(script.wait().code, 130)
        self.assertLess(time.monotonic() - started, 5)  # the session's lease is 10 s
        self.assert_free(self.cluster, b"c38")
        self.assertEqual(list(self.cluster.status(b"c38:gate").waiters), [])


class StatementsDefault(Statements):
    """The same under the default profile; keys may be longer, a free key needs no lock."""

    OPTIONS = []

    def test_c41_set_of_a_free_key(self):
        self.assert_ok(self.cluster.esi(puts(["c41:free"])))
        self.assert_ok(self.cluster.esi("SET c41:free v\nSTORE c41:free\n"))
        self.assertEqual(self.cluster.status(b"c41:free").value, b"v")

    def test_c44_key_of_40_and_41_bytes(self):
        self.assert_ok(self.cluster.esi(puts(["k" * 41, "k" * 255])))
        result = self.assert_aborts(self.cluster.esi("GET first\nGET " + "k" * 256 + "\n"), 2,
                                    "KEY_TOO_LONG")
        self.assertIn("255", result["message"])

    def test_c44_bytes_are_counted_not_characters(self):
        self.assert_ok(self.cluster.esi("GET " + "ñ" * 127 + "\n"))
        self.assert_aborts(self.cluster.esi("GET " + "ñ" * 128 + "\n"), 1, "KEY_TOO_LONG")

    def test_c45_long_key_after_good_ones(self):
        script = self.cluster.esi("GET c45:a\nSET c45:a 1\nGET c45:" + "x" * 41 + "\nSTORE c45:a\n")
        self.assert_ok(script)


@unittest.skipIf(MISSING, MISSING)
class Syntax(Shared):
    """What a line may look like; nothing runs while one is wrong."""

    def assert_parse_error(self, text, line, column, quoted):
        script = self.cluster.esi(text, "wrong.esi")
        self.assertEqual((script.code, script.results), (2, []))
        path = self.cluster.directory / "wrong.esi"
        self.assertIn(f"{path}:{line}:{column}: ", script.err)
        self.assertIn(quoted, script.err)

    def test_c88_blanks_around_a_line(self):
        self.assert_ok(self.cluster.esi("  \tGET \t c88  \n\tSET   c88 v w \t \n STORE c88\t\n"))
        self.assertEqual(self.cluster.status(b"c88").value, b"v w")

    def test_c89_keywords_in_any_case(self):
        self.assert_ok(self.cluster.esi("get c89\nSet c89 v\nstOrE c89\n"))
        self.assertEqual(self.cluster.status(b"c89").value, b"v")
        self.assertFalse(self.cluster.status(b"C89").known)

    def test_c90_blank_and_comment_lines(self):
        script = self.assert_ok(self.cluster.esi("\n# a comment\n   \n\t# another\nGET c90\n\n"))
        self.assertEqual(script.outcomes(), [(5, "ok", "")])

    def test_c90_unknown_keyword_and_missing_key(self):
        self.assert_parse_error("GET c90:x\nPUSH c90 v\n", 2, 1, "PUSH c90 v")
        self.assert_parse_error("GET c90:x\nGET\n", 2, 4, "GET")
        self.assert_parse_error("GET c90:x\n  STORE  \n", 2, 8, "STORE")
        self.assert_parse_error("GET c90:x extra\n", 1, 11, "GET c90:x extra")
        self.assertFalse(self.cluster.status(b"c90:x").known)

    def test_c91_extensions_are_off_in_classic(self):
        for line in ("READ k", "PUT k v", "DEL k", "SLEEP 1", "REPEAT 2", "END", "EXPECT v"):
            script = self.cluster.esi(line + "\n", "wrong.esi", "--profile", "classic")
            self.assertEqual((script.code, script.results), (2, []))
            self.assertIn(f"wrong.esi:1:1: expected GET, SET or STORE; {line.split()[0]} is an "
                          "extension, off in the classic profile", script.err)
        script = self.cluster.esi("GET c91\nSET c91 ${HOME} ${zipf 5}\n", "wrong.esi",
                                  "--profile", "classic")
        self.assertEqual(script.code, 2)
        self.assertIn("wrong.esi:2:17: expected no ${zipf n}; it is an extension", script.err)
        self.assertFalse(self.cluster.status(b"c91").known)
        self.assert_ok(self.cluster.esi("GET c91\nSET c91 $1 ${HOME}\nSTORE c91\n", "text.esi",
                                        "--profile", "classic"))
        self.assertEqual(self.cluster.status(b"c91").value, b"$1 ${HOME}")

    def test_c44_an_expanded_key_of_41_bytes(self):
        script = self.cluster.esi("REPEAT 10\nGET " + "k" * 39 + "${i}\nEND\n")
        self.assertEqual([r["reason"] for r in script.results], [""] * 9 + ["KEY_TOO_LONG"])
        self.assertIn("40", script.results[-1]["message"])

    def test_c92_set_without_value(self):
        for line in ("SET c92", "SET c92 ", "SET c92 \t "):
            self.assert_parse_error(f"GET c92\n{line}\n", 2, 8, "SET c92")
        self.assertFalse(self.cluster.status(b"c92").known)

    def test_c93_crlf_and_no_newline_at_the_end(self):
        self.assert_ok(self.cluster.esi("GET c93\r\nSET c93 v\r\n\r\n# x\r\nSTORE c93"))
        self.assertEqual(self.cluster.status(b"c93").value, b"v")
        self.assert_ok(self.cluster.esi("GET c93\nSET c93 w"))
        self.assertEqual(self.cluster.status(b"c93").value, b"w")

    def test_bytes_that_are_no_utf8(self):
        key = b"k\xff\xfe"
        self.assert_ok(self.cluster.esi(b"GET %b\nSET %b \x80\x81\nSTORE %b\n" % (key, key, key)))
        self.assertEqual(self.cluster.status(b"k\xff\xfe").value, b"\x80\x81")

    def test_empty_script(self):
        script = self.assert_ok(self.cluster.esi(""))
        self.assertEqual(script.results, [])


@unittest.skipIf(MISSING, MISSING)
class Extensions(Shared):
    """What scripts have besides, under the default profile."""

    OPTIONS = []

    def test_read_put_and_del(self):
        script = self.assert_ok(self.cluster.esi("PUT ext:k one two\nREAD ext:k\n"
                                                 "EXPECT one two\nDEL ext:k\n"))
        self.assertEqual([r["statement"] for r in script.results], ["PUT", "READ", "EXPECT", "DEL"])
        self.assertEqual(script.results[1]["value"], "one two")
        self.assertIsNone(self.cluster.status(b"ext:k").value or None)
        self.assertEqual(self.cluster.esi("READ ext:k\n").code, 1)

    def test_repeats_and_rounds(self):
        script = self.assert_ok(self.cluster.esi(
            "REPEAT 2\nREPEAT 3\nPUT ext:${i} v${i}\nEND\nGET ext:${i}\nEXPECT v${i}\nEND\n"))
        self.assertEqual([(r["line"], r["round"], r["key"]) for r in script.results],
                         [(3, 1, "ext:1"), (3, 2, "ext:2"), (3, 3, "ext:3"), (5, 1, "ext:1"),
                          (6, 1, ""), (3, 1, "ext:1"), (3, 2, "ext:2"), (3, 3, "ext:3"),
                          (5, 2, "ext:2"), (6, 2, "")])

    def test_what_is_expected_and_does_not_come(self):
        script = self.cluster.esi("PUT ext:e one\nREAD ext:e\nEXPECT two\nPUT ext:e three\n")
        result = self.assert_aborts(script, 3, "EXPECTATION_FAILED")
        self.assertEqual((result["code"], result["expected"]), ("FAILED_PRECONDITION", "two"))
        self.assertIn('expected "two", the last GET or READ answered "one"', result["message"])
        self.assertEqual(self.cluster.status(b"ext:e").value, b"one")

    def test_expanded_keys_that_are_too_long(self):
        script = self.cluster.esi("REPEAT 10\nPUT " + "k" * 254 + "${i} v\nEND\n")
        self.assertEqual([r["reason"] for r in script.results], [""] * 9 + ["KEY_TOO_LONG"])
        self.assertEqual((script.code, script.results[-1]["round"]), (1, 10))

    def test_equal_seeds_draw_equal_keys(self):
        text = "REPEAT 10\nPUT ext:${rand 0 999999999} ${zipf 1000}\nEND\n"
        drawn = [[r["key"] for r in self.assert_ok(
            self.cluster.esi(text, "draw.esi", *options)).results]
            for options in (("--seed", "7"), ("--seed", "7"), ("--seed", "8"), (), ())]
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(len({tuple(keys) for keys in drawn}), 4)
        script = self.cluster.esi(text, "draw.esi")
        seed = script.err.removeprefix("redistinto-esi: seed=").strip()
        again = self.cluster.esi(text, "draw.esi", "--seed", seed)
        self.assertEqual(([r["key"] for r in script.results], again.err),
                         ([r["key"] for r in again.results], ""))


if __name__ == "__main__":
    tap.main()
