"""Whether the npm packages of the clients are installed (install.sh installs them)."""
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent


def why_missing():
    """Why the JavaScript clients cannot run; None when they can."""
    if shutil.which("node") is None:
        return "node is missing"
    installed = HERE / "node_modules" / ".installed"
    if not installed.exists() or installed.read_bytes() != \
            (HERE / "package-lock.json").read_bytes():
        return "tests/interop/install.sh has not installed the npm packages"
    return None


def bin_path(name):
    return str(HERE / "node_modules" / ".bin" / name)
