"""deploy/quickstart.sh: what it shows, from where it may be called, and that it leaves nothing."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import tap
from cluster import BUILD, DEADLINE_S, ROOT, descendants, is_running, wait_until

QUICKSTART = ROOT / "deploy" / "quickstart.sh"


class Quickstart(unittest.TestCase):
    """Started in a directory of its own, where its temporary files are too."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="redistinto-test-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()

    def start(self, *arguments, path=QUICKSTART):
        return subprocess.Popen([path, *arguments], cwd=self.directory, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "BUILD_DIR": str(BUILD),
                                     "TMPDIR": str(self.temporary)})

    def run_to_end(self, *arguments, **keywords):
        process = self.start(*arguments, **keywords)
        out, _ = process.communicate(timeout=DEADLINE_S)
        return process.returncode, out

    def assert_nothing_is_left(self):
        wait_until(lambda: not descendants(), "no process is left")
        self.assertEqual(os.listdir(self.temporary), [])

    def test_shows_where_keys_live_and_ends_clean_twice(self):
        for _ in range(2):
            code, out = self.run_to_end()
            self.assertEqual(code, 0, out)
            self.assertRegex(out.partition("Where each key lives:\n")[2], r"instance-[123]")
            self.assert_nothing_is_left()

    def test_through_a_symbolic_link(self):
        link = self.directory / "start-here"
        link.symlink_to(QUICKSTART)
        code, out = self.run_to_end(path=link)
        self.assertEqual(code, 0, out)
        self.assert_nothing_is_left()

    def test_keep_leaves_a_cluster_that_the_printed_command_stops(self):
        code, out = self.run_to_end("--keep")
        self.assertEqual(code, 0, out)
        self.assertEqual(len(descendants()), 5)
        subprocess.run(re.search(r"^stop it:  (.*)$", out, re.M).group(1), shell=True, check=True)
        self.assert_nothing_is_left()

    def test_ctrl_c_once_the_cluster_runs(self):
        for number, group, code in ((signal.SIGINT, True, 130), (signal.SIGTERM, False, 143)):
            process = self.start()
            wait_until(lambda: list(self.temporary.glob("*/ready.json")), "the cluster runs")
            (os.killpg if group else os.kill)(process.pid, number)
            out, _ = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, code, out)
            self.assertFalse(is_running(process.pid))
            self.assert_nothing_is_left()

    def test_unknown_argument(self):
        code, out = self.run_to_end("--kep")
        self.assertEqual(code, 2)
        self.assertIn("--keep", out)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    tap.main()
