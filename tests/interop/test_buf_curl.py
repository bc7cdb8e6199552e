"""`buf curl` as a client that knows nothing but an address: everything comes by reflection."""
import base64
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import tap  # noqa: E402
from packages import bin_path, why_missing  # noqa: E402

try:
    from fleet import APPLIED_NO, Fleet, common
    MISSING = why_missing()
except unittest.SkipTest as skip:
    MISSING = str(skip)
except ImportError as missing:
    MISSING = f"python3 module {missing.name} is missing"

COMMON = {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
          "grpc.reflection.v1alpha.ServerReflection"}
OF_COORDINATOR = {f"redistinto.v1.{name}Service" for name in ("Admin", "Coordinator", "Registry")}
OF_INSTANCE = {f"redistinto.v1.{name}Service" for name in ("Instance", "Ownership")}
CODE_FACTOR = 8  # the exit status of a failed call is its gRPC code times this


@unittest.skipIf(MISSING, MISSING)
class BufCurl(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.fleet = cls.enterClassContext(Fleet(instances="a"))

    def curl(self, address, path, *options):
        return subprocess.run(
            [bin_path("buf"), "curl", "--http2-prior-knowledge", "--protocol", "grpc", *options,
             f"http://{address}/{path}"], capture_output=True, text=True, check=False, timeout=30)

    def lines(self, address, *options):
        done = self.curl(address, "", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_services_are_listed(self):
        for version in ("grpc-v1", "grpc-v1alpha"):
            with self.subTest(version=version):
                services = set(self.lines(self.fleet.coordinator, "--list-services",
                                          "--reflect-protocol", version))
                self.assertEqual(services, COMMON | OF_COORDINATOR)
        services = set(self.lines(self.fleet.addresses["a"], "--list-services"))
        self.assertEqual(services, COMMON | OF_INSTANCE)

    def test_every_method_is_described(self):
        for address in (self.fleet.coordinator, self.fleet.addresses["a"]):
            methods = self.lines(address, "--list-methods")
            services = set(self.lines(address, "--list-services"))
            self.assertEqual({method.split("/")[0] for method in methods}, services)

    def test_unary_calls(self):
        for address in (self.fleet.coordinator, self.fleet.addresses["a"]):
            done = self.curl(address, "grpc.health.v1.Health/Check", "-d", "{}")
            self.assertEqual(json.loads(done.stdout), {"status": "SERVING"}, done.stderr)
        done = self.curl(self.fleet.coordinator, "redistinto.v1.AdminService/ListInstances",
                         "-d", "{}")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = json.loads(done.stdout)["instances"]
        self.assertEqual([(i["name"], i["address"]) for i in listed],
                         [("a", self.fleet.addresses["a"])])

    def test_streaming_call(self):
        nobody = base64.b64encode(b"no session of it").decode()
        statement = {"statement_id": 7, "session_id": nobody, "get": {"key": "aw=="},
                     "request_id": {"client_id": nobody, "seq": 1}}
        done = self.curl(self.fleet.coordinator, "redistinto.v1.CoordinatorService/Execute",
                         "-d", json.dumps(statement))
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["statementId"], answer["error"]["routing"]["reason"]),
                         ("7", "SESSION_UNKNOWN"), done.stdout)

    def test_details_of_a_failure(self):
        done = self.curl(self.fleet.addresses["a"], "redistinto.v1.InstanceService/Set",
                         "-d", "{}")
        self.assertEqual(done.returncode, 3 * CODE_FACTOR, done.stderr)
        error = json.loads(done.stderr)
        self.assertEqual(error["code"], "invalid_argument")
        self.assertEqual([detail["type"] for detail in error["details"]],
                         ["google.rpc.ErrorInfo", "redistinto.v1.RoutingError"])

    def route(self, key, operation):
        return self.curl(self.fleet.coordinator, "redistinto.v1.CoordinatorService/Route", "-d",
                         json.dumps({"key": base64.b64encode(key).decode(),
                                     "operation": f"ROUTE_OPERATION_{operation}"}))

    def test_route(self):
        done = self.route(b"routed", "PUT")
        self.assertEqual(done.returncode, 0, done.stderr)
        route = json.loads(done.stdout)["route"]
        self.assertEqual((route["owner"], route["address"]), ("a", self.fleet.addresses["a"]))
        done = self.route(b"unheard of", "READ")
        self.assertEqual(done.returncode, 5 * CODE_FACTOR, done.stderr)
        error = json.loads(done.stderr)
        details = {detail["type"]: base64.b64decode(detail["value"] + "==")
                   for detail in error["details"]}
        routing = common.RoutingError.FromString(details["redistinto.v1.RoutingError"])
        self.assertEqual((error["code"], routing.reason, routing.applied, routing.key),
                         ("not_found", "KEY_NOT_IDENTIFIED", APPLIED_NO, b"unheard of"))

    def test_unknown_method(self):
        done = self.curl(self.fleet.coordinator, "redistinto.v1.CoordinatorService/Shout",
                         "-d", "{}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Shout", done.stderr)


if __name__ == "__main__":
    tap.main()
