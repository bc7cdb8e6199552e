"""Runs one of the JavaScript clients against a cluster: run_node.py grpc_js|connect_node.

The client prints TAP. Nothing outlives this process (tests/integration/cluster.py).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRPC_PROTO = "/usr/share/grpc-proto"
sys.path.insert(0, str(ROOT / "tests" / "integration"))

import cluster  # noqa: E402
from packages import why_missing  # noqa: E402


def write_descriptor_set(path):
    proto = ROOT / "proto"
    names = [str(file.relative_to(proto)) for folder in ("redistinto/v1", "google/rpc")
             for file in sorted((proto / folder).glob("*.proto"))]
    subprocess.run(["protoc", f"-I{proto}", f"-I{GRPC_PROTO}", "--include_imports",
                    f"--descriptor_set_out={path}", *names, "grpc/health/v1/health.proto"],
                   check=True)


def main():
    missing = why_missing()
    if missing:
        print(f"1..0 # SKIP {missing}")
        return 0
    import fleet
    try:
        with fleet.Fleet(instances="ab") as running, tempfile.TemporaryDirectory() as directory:
            descriptor_set = os.path.join(directory, "set.binpb")
            write_descriptor_set(descriptor_set)
            return subprocess.run(
                ["node", str(HERE / f"{sys.argv[1]}.mjs")], check=False,
                timeout=cluster.DEADLINE_S, env={**os.environ, "PROTO": str(ROOT / "proto"),
                "GRPC_PROTO": GRPC_PROTO, "DESCRIPTOR_SET": descriptor_set, "CLUSTER": json.dumps({
                    "coordinator": running.coordinator, "instances": running.addresses,
                    "pids": {name: s.pid for name, s in running.services.items()}})}).returncode
    finally:
        cluster.kill_descendants()


if __name__ == "__main__":
    sys.exit(main())
