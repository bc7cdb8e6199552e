"""`redistinto bench`: what it counts on each path, its JSON, its exit codes. Never how fast it is."""
import json
import signal
import subprocess
import tempfile
import unittest

import tap
from cluster import Cluster, binary, run, wait_until

PERCENTILES = ["p50", "p90", "p99", "p999", "max"]
ALL = ["operations", "rate", "seconds", "interrupted", "not_begun", "empty_reads", "errors",
       "latency_us", "read", "update"]
SMALL = ["--keys", "50", "--operations", "400", "--duration", "1m", "--concurrency", "4"]


class Options(unittest.TestCase):
    """What is refused before anything is sent."""

    def test_out_of_range(self):
        for arguments, valid in (
                (["--reads", "101"], "0..100"),
                (["--keys", "0"], "1..10000000"),
                (["--keys", "10000001"], "1..10000000"),
                (["--batch", "1025"], "1..1024"),
                (["--concurrency", "1025"], "1..1024"),
                (["--connections", "257"], "1..256"),
                (["--rate", "100000001"], "0..100000000"),
                (["--path", "fast"], "pipelined"),
                (["--operation", "get"], "put"),
                (["--distribution", "normal"], "zipfian"),
                (["--zipf-s", "0"], "at most 10"),
                (["--value-size", "5-4"], "MIN-MAX"),
                (["--value-size", "1048577"], "1048576"),
                (["--key-prefix", "k" * 31], "at most 30"),
                (["--path", "pipelined", "--batch", "64", "--value-size", "32769"], "2097152"),
                (["--duration", "0"], "1ms")):
            result = run("redistinto", "bench", *arguments)
            self.assertEqual((result.code, result.out), (2, b""), arguments)
            self.assertIn(valid, result.err.decode(), arguments)

    def test_nobody_answers(self):
        for path in ("routed", "direct", "pipelined"):
            result = run("redistinto", "--coordinator", "127.0.0.1:1", "bench", "--path", path)
            self.assertEqual((result.code, result.out), (5, b""), result.err)
            self.assertIn(b"127.0.0.1:1: ", result.err)
        result = run("redistinto", "--coordinator", "127.0.0.1:1", "-o", "json", "bench")
        self.assertEqual((result.code, result.err), (5, b""))
        self.assertEqual(result.json()["error"]["code"], "UNAVAILABLE")


class Runs(unittest.TestCase):
    """Short loads on a cluster of two instances."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(instances=2))

    def bench(self, *arguments):
        return self.cluster.cli("-o", "json", "bench", *arguments)

    def count(self, *arguments):
        """The JSON of a load of which nothing failed."""
        result = self.bench(*SMALL, *arguments)
        self.assertEqual((result.code, result.err), (0, b""), result.out)
        got = result.json()
        self.assertEqual(list(got), ALL)
        self.assertEqual((got["errors"], got["interrupted"], got["not_begun"]), ({}, False, 0))
        self.assertEqual(got["operations"],
                         got["read"]["operations"] + got["update"]["operations"])
        for latency in (got["latency_us"], got["read"]["latency_us"], got["update"]["latency_us"]):
            self.assertEqual(list(latency), PERCENTILES)
            self.assertEqual(list(latency.values()), sorted(latency.values()))
        return got

    def test_every_path_does_all_operations(self):
        for path in ("routed", "direct", "pipelined"):
            for operation in ("set", "put"):
                with self.subTest(path=path, operation=operation):
                    got = self.count("--path", path, "--operation", operation)
                    self.assertEqual(got["operations"], 400)
                    self.assertEqual(got["empty_reads"], 0)
                    self.assertGreater(got["rate"], 0)
                    self.assertGreater(got["read"]["operations"], 100)
                    self.assertGreater(got["update"]["operations"], 100)

    def test_mix(self):
        self.assertEqual(self.count("--reads", "0")["update"]["operations"], 400)
        self.assertEqual(self.count("--reads", "100")["read"]["operations"], 400)

    def test_equal_seeds_draw_equal_operations(self):
        reads = [self.count("--seed", seed, "--path", "pipelined")["read"]["operations"]
                 for seed in ("7", "7", "8", "9", "10")]
        self.assertEqual(reads[0], reads[1])
        self.assertGreater(len(set(reads)), 1)

    def test_distributions_sizes_and_connections(self):
        for arguments in (["--distribution", "zipfian", "--zipf-s", "1.2"],
                          ["--value-size", "0-3000"], ["--value-size", "0"],
                          ["--connections", "3"], ["--concurrency", "1"],
                          ["--path", "pipelined", "--batch", "1"],
                          ["--path", "pipelined", "--batch", "1024"],
                          ["--warmup", "50ms"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.count(*arguments)["operations"], 400)

    def test_open_loop(self):
        for path in ("routed", "direct", "pipelined"):
            got = self.count("--path", path, "--rate", "1000")
            self.assertEqual(got["operations"], 400)
            self.assertGreater(got["seconds"], 0.39)  # the last one has its time at 399 ms

    def test_a_rate_out_of_reach_is_told(self):
        result = self.bench("--keys", "10", "--concurrency", "1", "--rate", "100000000",
                            "--duration", "200ms")
        self.assertEqual(result.code, 0, result.err)
        got = result.json()
        self.assertGreater(got["not_begun"], 0)
        self.assertEqual(got["operations"] + got["not_begun"], 20000000)
        text = self.cluster.cli("bench", "--keys", "10", "--concurrency", "1", "--rate",
                                "100000000", "--duration", "200ms").text()
        self.assertIn("the rate was not reached: ", text)

    def test_text(self):
        text = self.cluster.cli("bench", *SMALL, "--reads", "0").text()
        self.assertRegex(text, r"^[0-9.]+ operations/s for [0-9.]+ s\n\nOPERATION +DONE +FAILED +"
                               r"P50 +P90 +P99 +P99.9 +MAX \(us\)\nupdate +400 +0 ")
        self.assertNotIn("\nread ", text)

    def test_keys_are_placed_and_stay(self):
        self.count("--key-prefix", "stays-")
        listed = self.cluster.cli("-o", "json", "read", "stays-0000000049")
        self.assertEqual(listed.code, 0, listed.err)

    def test_interrupts_print_what_was_measured(self):
        for path, number in (("direct", signal.SIGINT), ("routed", signal.SIGTERM)):
            with tempfile.TemporaryFile() as err:
                process = subprocess.Popen(
                    [binary("redistinto"), "--coordinator", self.cluster.coordinator, "-o", "json",
                     "bench", "--path", path, "--keys", "1", "--key-prefix", f"int-{path}-",
                     "--duration", "10m"], stdout=subprocess.PIPE, stderr=err)
                wait_until(lambda p=path: self.cluster.cli("read", f"int-{p}-0000000000").code == 0,
                           "the load has begun")
                process.send_signal(number)
                out, _ = process.communicate(timeout=20)
                self.assertEqual(process.returncode, 130)
                self.assertIn(b'"interrupted":true', out)


class Failures(unittest.TestCase):
    """A cluster that refuses."""

    def test_locks_are_required(self):
        with Cluster("--profile", "classic", instances=1) as cluster:
            result = cluster.cli("-o", "json", "bench", *SMALL)
            self.assertEqual((result.code, result.err), (3, b""), result.out)
            self.assertEqual(result.json()["error"]["reason"], "KEY_NOT_IDENTIFIED")
            self.assertEqual(cluster.cli("put", "bench-0000000000", "value").code, 0)
            for path in ("routed", "direct", "pipelined"):
                result = cluster.cli("-o", "json", "bench", "--path", path, "--keys", "1")
                self.assertEqual((result.code, result.err), (4, b""), result.out)
                self.assertEqual(result.json()["error"]["reason"], "KEY_NOT_LOCKED")

    def test_owners_that_die_are_counted(self):
        with Cluster(instances=1) as cluster:
            process = subprocess.Popen(
                [binary("redistinto"), "--coordinator", cluster.coordinator, "-o", "json",
                 "--timeout", "300ms", "bench", "--keys", "1", "--duration", "2s"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda: cluster.cli("read", "bench-0000000000").code == 0,
                       "the load has begun")
            process.send_signal(signal.SIGSTOP)
            cluster.kill("instance-1")
            process.send_signal(signal.SIGCONT)
            out, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, err), (1, b""), out)
            got = json.loads(out)
            self.assertGreater(got["read"]["failed"] + got["update"]["failed"], 0)
            self.assertEqual(sum(got["errors"].values()),
                             got["read"]["failed"] + got["update"]["failed"])


if __name__ == "__main__":
    tap.main()
