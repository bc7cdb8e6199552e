"""Who may not come in: used names, used and foreign data directories, taken ports."""
import os
import shutil
import signal
import unittest

import tap
from cluster import Cluster, Service, run, wait_until


class Refusals(unittest.TestCase):
    """One cluster with two instances; each test brings one process too many."""

    def setUp(self):
        self.cluster = Cluster("--lease", "1s", instances=2)
        self.addCleanup(self.cluster.close)
        self.cluster.start()

    def extra_instance(self, name, data_dir, *options):
        return Service("redistinto-instance", "--name", name, "--listen", "127.0.0.1:0",
                       "--coordinator", self.cluster.coordinator, "--data-dir", data_dir, *options,
                       directory=self.cluster.directory)

    def assert_refused(self, service, word, code=4):
        self.assertEqual(service.wait_exit(), code, service.logged())
        self.assertIn(word, service.logged())

    def assert_untouched(self):
        self.assertEqual(self.cluster.states(), {"instance-1": "alive", "instance-2": "alive"})
        self.assertEqual(self.cluster.cli("health").code, 0)

    def test_name_in_use(self):
        service = self.extra_instance("instance-1", self.cluster.directory / "other")
        self.assert_refused(service, "NAME_IN_USE")
        self.assert_untouched()

    def test_name_is_free_after_its_lease(self):
        self.cluster.kill("instance-1")
        self.cluster.wait_state("instance-1", "dead")
        service = self.extra_instance("instance-1", self.cluster.directory / "other").wait_ready()
        self.cluster.wait_state("instance-1", "alive")
        self.assertEqual(service.stop(), 0)

    def test_data_directory_in_use(self):
        service = self.extra_instance("instance-3", self.cluster.data_dir / "instance-1")
        self.assert_refused(service, "instance-1")
        self.assert_untouched()

    def test_data_directory_of_another_name(self):
        self.cluster.kill("instance-1")
        service = self.extra_instance("instance-3", self.cluster.data_dir / "instance-1")
        self.assert_refused(service, "belongs to instance 'instance-1'")
        self.cluster.restart("instance-1")
        self.cluster.wait_state("instance-1", "alive")
        self.assert_untouched()

    def test_copy_of_a_data_directory(self):
        copy = self.cluster.directory / "copy"
        shutil.copytree(self.cluster.data_dir / "instance-1", copy)
        self.assert_refused(self.extra_instance("instance-3", copy),
                            "belongs to instance 'instance-1'")
        self.assert_untouched()

    def test_data_directory_of_another_cluster(self):
        foreign = self.cluster.directory / "foreign"
        with Cluster(instances=3) as other:
            other.stop()
            shutil.move(other.data_dir / "instance-3", foreign)
        service = self.extra_instance("instance-3", foreign)
        self.assert_refused(service, "WRONG_CLUSTER")
        self.assert_untouched()

    def test_second_coordinator_on_the_data(self):
        service = Service("redistinto-coordinator", "--listen", "127.0.0.1:0", "--data-dir",
                          self.cluster.data_dir / "coordinator", directory=self.cluster.directory)
        self.assert_refused(service, "coordinator")
        self.assert_untouched()

    def test_taken_port(self):
        service = Service("redistinto-coordinator", "--listen", self.cluster.coordinator,
                          "--data-dir", self.cluster.directory / "other",
                          directory=self.cluster.directory)
        self.assert_refused(service, self.cluster.coordinator)
        self.assert_untouched()

    def test_crashed_instance_takes_its_name_over_at_once(self):
        self.cluster.stop()
        self.cluster.options = ["--lease", "1h"]
        self.cluster.start()
        before = self.incarnation("instance-1")
        self.cluster.kill("instance-1")
        self.cluster.restart("instance-1")
        wait_until(lambda: self.incarnation("instance-1") > before, "a new life")
        self.assert_untouched()

    def incarnation(self, name):
        listed = self.cluster.cli("instances", "-o", "json").json()["instances"]
        return next(i["incarnation"] for i in listed if i["name"] == name)

    def test_instance_leaves_on_sigterm(self):
        os.kill(self.cluster.pid_of("instance-2"), signal.SIGTERM)
        self.cluster.wait_state("instance-2", "left")
        wait_until(lambda: "instance-2" in self.cluster.said(), "dev notices")
        self.assertIn("exited with status 0", self.cluster.said())


class WithoutCoordinator(unittest.TestCase):
    """Services alone."""

    def test_coordinator_alone_places_nothing(self):
        with Cluster(instances=1) as cluster:
            cluster.stop()
            coordinator = cluster.service("coordinator").wait_ready()
            result = run("redistinto", "--coordinator", coordinator.address, "instances", "-o",
                         "json")
            self.assertEqual(result.json()["instances"][0]["state"], "left")
            self.assertEqual(coordinator.stop(), 0)

    def test_instance_waits_for_its_coordinator(self):
        with Cluster(instances=1) as cluster:
            cluster.stop()
            instance = cluster.service("instance-1")
            coordinator = cluster.service("coordinator").wait_ready()
            instance.wait_ready()
            self.assertEqual(instance.stop(), 0)
            self.assertEqual(coordinator.stop(), 0)


if __name__ == "__main__":
    tap.main()
