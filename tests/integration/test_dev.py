"""`redistinto dev`: starts, says where everything is, stops everything, however it ends."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import unittest

import tap
from cluster import Cluster, binary, is_running, run, wait_until


class Dev(unittest.TestCase):
    """Life and death of the cluster in one command."""

    def assert_gone(self, pids):
        wait_until(lambda: not any(map(is_running, pids)), "no process of the cluster is left")

    def test_sigterm_stops_all_and_exits_0(self):
        with Cluster() as cluster:
            pids = cluster.pids()
            self.assertEqual(len(set(pids)), 4)
            self.assertTrue(all(map(is_running, pids)))
            self.assertEqual(cluster.stop(), 0)
            self.assertFalse(any(map(is_running, pids)))
            self.assertEqual(cluster.said(), "")
            self.assertFalse(cluster.ready_file.exists())

    def test_ctrl_c_stops_all_and_exits_0(self):
        with Cluster(instances=1) as cluster:
            pids = cluster.pids()
            self.assertEqual(cluster.stop(signal.SIGINT), 0)
            self.assertFalse(any(map(is_running, pids)))

    def test_ctrl_c_in_a_terminal_reaches_the_children_through_dev_only(self):
        with Cluster(instances=1) as cluster:
            for pid in cluster.pids():
                self.assertNotEqual(os.getpgid(pid), os.getpgid(cluster.dev.pid))
                self.assertNotEqual(os.getsid(pid), os.getsid(cluster.dev.pid))

    def test_sigkill_of_dev_leaves_nothing_running(self):
        with Cluster() as cluster:
            pids = cluster.pids()
            cluster.dev.kill()
            cluster.dev.wait()
            self.assert_gone(pids)

    def test_sigkill_while_it_starts_leaves_nothing_running(self):
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / "data" / "instance-1.log"
            dev = subprocess.Popen([binary("redistinto"), "dev", "--base-port", "0",
                                    "--data-dir", str(log.parent)], stdout=subprocess.DEVNULL)
            wait_until(log.exists, "the first instance is started")
            dev.kill()
            dev.wait()
            wait_until(lambda: not any(str(log.parent).encode() in _command_line(pid)
                                       for pid in os.listdir("/proc") if pid.isdigit()),
                       "no process of the cluster is left")

    def test_ready_file_and_summary(self):
        with Cluster(instances=2) as cluster:
            info = cluster.info
            self.assertEqual(info["pid"], cluster.dev.pid)
            self.assertEqual([m["name"] for m in info["instances"]], ["instance-1", "instance-2"])
            self.assertEqual(info["data_dir"], str(cluster.data_dir))
            self.assertEqual(json.loads(cluster.ready_file.read_text()), info)
            self.assertEqual([p.name for p in cluster.directory.glob("ready.json*")],
                             ["ready.json"])
            shown = wait_until(cluster.shown, "the summary is shown")
            self.assertIn("not for production", shown)
            for member in info["instances"]:
                self.assertRegex(shown, rf"{member['name']} +{member['address']} +pid "
                                        rf"{member['pid']}\b")
            self.assertIn(cluster.coordinator, shown)
            self.assertNotIn("\x1b", shown)

    def test_summary_as_json_is_the_ready_file(self):
        with Cluster("-o", "json", instances=1) as cluster:
            shown = wait_until(cluster.shown, "the summary is shown")
            self.assertEqual(json.loads(shown), cluster.info)

    def test_coordinator_gets_its_options(self):
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory) / "operations.log"
            with Cluster("--profile", "classic", "--distribution", "key-explicit", "--key-ranges",
                         "ceil", "--delay-ms", "20", "--operation-log", log,
                         instances=2) as cluster:
                said = (cluster.data_dir / "coordinator.log").read_text()
                self.assertIn("profile=classic distribution=key-explicit key-ranges=ceil", said)
                self.assertIn("delay_ms=20", said)
                answer = cluster.cli("distribution", "-o", "json").json()
                self.assertEqual(answer["distribution"], "key-explicit")
                self.assertEqual(cluster.cli("get", "zeta").code, 3)
            self.assertIn("key=zeta result=KEY_NOT_IDENTIFIED", log.read_text())

    def test_planner_starts_an_esi_service(self):
        with Cluster("--planner", "fifo", instances=1) as cluster:
            esi = ["--esi", cluster.info["esi"]]
            script = cluster.directory / "one.esi"
            script.write_text("GET dev:k\nSET dev:k v\nSTORE dev:k\n", encoding="ascii")
            number = cluster.cli("esi", "submit", script, *esi).text().strip()
            ended = cluster.cli("esi", "wait", number, *esi, "--timeout", "30s", "-o", "json")
            self.assertEqual((ended.code, ended.json()["end"]), (0, "ok"), ended.err)
            listed = cluster.cli("esi", "list", *esi, "-o", "json").json()
            self.assertEqual(listed["planner"], "fifo")
            pids = [*cluster.pids(), cluster.info["esi_pid"]]
            self.assertTrue(is_running(cluster.info["esi_pid"]))
            self.assertEqual(cluster.stop(), 0, cluster.said())
            self.assert_gone(pids)
        with Cluster(instances=1) as cluster:
            self.assertIsNone(cluster.info["esi"])

    def test_the_esi_service_gets_its_options(self):
        with Cluster("--profile", "classic", "--compaction", "local", "--planner", "sjf-sd",
                     "--alpha", "0.25", "--initial-estimate", "3", "--blocked", "dev:b,dev:c",
                     instances=1) as cluster:
            esi = ["--esi", cluster.info["esi"], "-o", "json"]
            for key in ("dev:b", "dev:c"):
                status = cluster.cli("esi", "status", key, *esi).json()
                self.assertEqual(status["holder"], "system")
            script = cluster.directory / "waits.esi"
            script.write_text("GET dev:b\n", encoding="ascii")
            number = cluster.cli("esi", "submit", script, *esi).json()["id"]
            listed = cluster.cli("esi", "list", *esi).json()["esis"]
            self.assertEqual([(e["id"], e["estimate"]) for e in listed], [(number, 3)])
            script.write_text("REPEAT 2\nGET dev:k\nEND\n", encoding="ascii")
            refused = cluster.cli("esi", "submit", script, *esi)
            self.assertEqual(refused.code, 2, "extensions are none of the course's")
            said = (cluster.data_dir / "coordinator.log").read_text()
            self.assertIn("compaction=local", said)

    def test_what_the_profile_sets_is_said_and_so(self):
        for profile in ("default", "classic"):
            with Cluster("--profile", profile, "--replacement", "LRU", instances=1) as cluster:
                rules = cluster.info["rules"]
                self.assertEqual(cluster.info["profile"], profile)
                shown = wait_until(cluster.shown, "the summary is shown")
                self.assertRegex(shown, rf"profile +{profile}, distribution equitable-load")
                for name, value in rules.items():
                    self.assertRegex(shown, rf"[ ,]{name} {value}[ ,]")
            options = [option for service in ("coordinator", "instance") for option in
                       run("redistinto-" + service, "--config", "/dev/null", "--profile", profile,
                           "--print-config", "-o", "json").json()["options"]]
            values = {option["name"]: option["value"] for option in options}
            self.assertEqual(rules, {name: values[name] for name in rules})
            self.assertLessEqual({option["name"] for option in options
                                  if option["origin"] == "profile"}, set(rules))

    def test_temporary_directory_is_removed(self):
        with tempfile.TemporaryDirectory() as parent:
            ready = pathlib.Path(parent) / "ready"
            dev = subprocess.Popen([binary("redistinto"), "dev", "--base-port", "0",
                                    "--instances", "1", "--ready-file", str(ready)],
                                   env={**os.environ, "TMPDIR": parent},
                                   stdout=subprocess.DEVNULL)
            wait_until(ready.exists, "dev serves")
            data = pathlib.Path(json.loads(ready.read_text())["data_dir"])
            self.assertEqual(data.parent, pathlib.Path(parent).resolve())
            self.assertTrue((data / "instance-1").is_dir())
            dev.terminate()
            self.assertEqual(dev.wait(), 0)
            self.assertEqual(os.listdir(parent), [])

    def test_member_that_dies_is_reported_with_how_to_restart_it(self):
        with Cluster("--lease", "1s", instances=2) as cluster:
            pid = cluster.pid_of("instance-2")
            cluster.kill("instance-2")
            said = wait_until(lambda: "by hand" in cluster.said() and cluster.said(),
                              "dev says who died")
            self.assertIn(f"instance-2 (pid {pid}) was killed by signal 9", said)
            line = re.search(r"^  (.*redistinto-instance .*)$", said, re.M).group(1)
            again = subprocess.Popen("exec " + line, shell=True, stdin=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            cluster.wait_state("instance-2", "alive")
            wait_until(lambda: cluster.cli("health").code == 0, "all serve again")
            self.assertIsNone(cluster.dev.poll())
            again.terminate()
            self.assertEqual(again.wait(), 0)
            self.assertEqual(cluster.stop(), 0)

    def test_data_survive_a_second_run(self):
        with Cluster(instances=1) as cluster:
            cluster.stop()
            first = (cluster.data_dir / "coordinator").stat().st_ino
            cluster.start()
            self.assertEqual((cluster.data_dir / "coordinator").stat().st_ino, first)
            self.assertEqual(cluster.cli("health").code, 0)

    def test_taken_ports_give_way(self):
        with contextlib.ExitStack() as held:
            base = _hold_ports(held, 0, 10)
            with Cluster("--base-port", base, instances=2) as cluster:
                ports = [int(address.rsplit(":", 1)[1]) for address in
                         (cluster.coordinator, *(m["address"] for m in cluster.info["instances"]))]
                self.assertEqual(len({*ports, base, base + 10}), 5)
                self.assertEqual(cluster.cli("health").code, 0)
                self.assertEqual(cluster.stop(), 0)
                self.assertEqual(cluster.said(), "")

    def test_one_entry_each(self):
        with Cluster("--entries", 1, "--entry-size", 16, instances=1) as cluster:
            self.assertEqual(cluster.cli("put", "k", "one entry").code, 0)
            self.assertEqual(cluster.cli("read", "k").out, b"one entry")
            self.assertEqual(cluster.cli("put", "k", "as long as two entries").code, 7)
            self.assertEqual(cluster.cli("read", "k").out, b"one entry")

    def test_second_dev_on_the_same_data_is_refused(self):
        with Cluster(instances=1) as cluster:
            result = run("redistinto", "dev", "--base-port", "0", "--data-dir", cluster.data_dir)
            self.assertEqual(result.code, 4, result.err)
            self.assertIn(b"coordinator exited with status 4", result.err)
            self.assertIn(b"Its log ends with:", result.err)
            self.assertEqual(cluster.cli("health").code, 0)

    def test_paused_member_does_not_keep_dev_from_ending(self):
        with Cluster(instances=1) as cluster:
            pids = cluster.pids()
            cluster.pause("instance-1")
            cluster.dev.send_signal(signal.SIGTERM)
            wait_until(lambda: cluster.dev.send_signal(signal.SIGTERM) or
                       cluster.dev.poll() is not None, "the second signal kills")
            self.assertEqual(cluster.dev.returncode, 1)
            self.assertIn("while stopping", cluster.said())
            self.assertFalse(any(map(is_running, pids)))


def _hold_ports(held, *offsets):
    """The first of ports with these distances that are taken until `held` is closed."""
    while True:
        with contextlib.ExitStack() as tried:
            first = tried.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                for offset in offsets[1:]:
                    tried.enter_context(socket.create_server(("127.0.0.1", first + offset)))
                held.push(tried.pop_all())
                return first


def _command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    tap.main()
