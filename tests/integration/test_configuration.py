"""Options of all four binaries: help, version, file, variables, origins; what is wrong with them."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import tap
from cluster import BUILD, ROOT, Service, binary, run, wait_until

BINARIES = ["redistinto", "redistinto-coordinator", "redistinto-instance", "redistinto-esi"]
SECTIONS = dict(zip(BINARIES, ["cli", "coordinator", "instance", "esi"]))


def option_of(program):
    """An option with its default and two other values."""
    if program in ("redistinto", "redistinto-esi"):
        return "timeout", "7s", "9s"
    return "log-level", "debug", "error"


class ConfigurationCase(unittest.TestCase):
    """A directory, and --print-config taken apart."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, text, name="redistinto.ini"):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def shown(self, program, *arguments, env=None):
        """Option -> "value ; origin"."""
        result = run(program, "--print-config", *arguments, env=env)
        self.assertEqual((result.code, result.err), (0, b""), program)
        return dict(re.findall(r"^(?:; )?([a-z-]+) = (.*)$", result.text(), re.M))

    def shown_json(self, program, *arguments, env=None):
        result = run(program, "--print-config", "-o", "json", *arguments, env=env)
        self.assertEqual((result.code, result.err), (0, b""), program)
        return result.json()

    def assert_refused(self, program, *arguments, said, env=None):
        result = run(program, *arguments, env=env)
        self.assertEqual((result.code, result.out), (2, b""), (arguments, result.err))
        for word in said:
            self.assertIn(word, result.err.decode())


class Texts(ConfigurationCase):
    """--help and --version."""

    def test_help(self):
        for program in BINARIES:
            for flag in ("--help", "-h"):
                result = run(program, flag)
                self.assertEqual((result.code, result.err), (0, b""), program)
                self.assertTrue(result.text().startswith(f"Usage: {program} "), result.text())
                self.assertIn("--print-config", result.text())
                self.assertLessEqual(max(map(len, result.text().splitlines())), 100)

    def test_help_tells_default_range_and_variable(self):
        for program, facts in (
                ("redistinto", "[default 5s; 1ms..1h; REDISTINTO_TIMEOUT]"),
                ("redistinto-coordinator", "[default 255; 1..255; REDISTINTO_KEY_MAX]"),
                ("redistinto-instance", "[required; REDISTINTO_NAME]"),
                ("redistinto-esi", "[default text; text | json; REDISTINTO_OUTPUT]")):
            text = " ".join(run(program, "--help").text().split())
            self.assertIn(facts, text)
            self.assertIn(f"[{SECTIONS[program]}]", text)

    def test_version(self):
        versions = set()
        for program in BINARIES:
            for flag in ("--version", "-V"):
                result = run(program, flag)
                self.assertEqual((result.code, result.err), (0, b""), program)
                versions.add(re.fullmatch(rf"{program} (\d+\.\d+\.\d+)\n", result.text()).group(1))
        self.assertEqual(len(versions), 1)

    def test_version_as_json(self):
        for program in BINARIES:
            for arguments in (["--version", "-o", "json"], ["-o", "json", "--version"],
                              ["--output=json", "-V"]):
                result = run(program, *arguments)
                self.assertEqual((result.code, result.err), (0, b""), program)
                version = result.json()
                self.assertEqual(list(version), ["name", "version", "protocol", "compiler"])
                self.assertEqual((version["name"], version["protocol"]),
                                 (program, "redistinto.v1"))
                self.assertRegex(version["version"], r"^\d+\.\d+\.\d+$")
                self.assertRegex(version["compiler"], r"^(gcc|clang) \d")

    def test_version_of_a_verb_is_that_of_its_binary(self):
        self.assertEqual(run("redistinto", "keys", "--version").out,
                         run("redistinto", "--version").out)
        self.assertEqual(run("redistinto", "keys", "-V", "-o", "json").json()["name"],
                         "redistinto")


class Origins(ConfigurationCase):
    """Where a value comes from, and which wins."""

    def test_default_variable_flag_and_file(self):
        for program in BINARIES:
            option, value, _ = option_of(program)
            variable = "REDISTINTO_" + option.upper().replace("-", "_")
            path = self.file(f"[{SECTIONS[program]}]\n{option} = {value}\n")
            self.assertRegex(self.shown(program)[option], r"^\w+ ; default$")
            self.assertEqual(self.shown(program, env={variable: value})[option],
                             f"{value} ; environment {variable}")
            self.assertEqual(self.shown(program, f"--{option}", value)[option], f"{value} ; flag")
            self.assertEqual(self.shown(program, "--config", path)[option],
                             f"{value} ; {path}:2")

    def test_as_json(self):
        for program in BINARIES:
            option, value, _ = option_of(program)
            variable = "REDISTINTO_" + option.upper().replace("-", "_")
            path = self.file(f"[{SECTIONS[program]}]\n\n{option} = {value}\n")

            def of(*arguments, env=None):
                shown = self.shown_json(program, *arguments, env=env)
                self.assertEqual(list(shown), ["name", "config_file", "options"])
                found = [o for o in shown["options"] if o["name"] == option]
                self.assertEqual(len(found), 1)
                self.assertEqual(found[0].pop("section"), SECTIONS[program])
                del found[0]["name"], found[0]["required"]
                return found[0]

            self.assertEqual(of()["origin"], "default")
            self.assertEqual(of(env={variable: value}), {
                "value": value, "origin": "environment", "variable": variable})
            self.assertEqual(of(f"--{option}", value), {"value": value, "origin": "flag"})
            self.assertEqual(of("--config", path), {
                "value": value, "origin": "file", "file": str(path), "line": 3})

    def test_flag_beats_variable_beats_file_beats_default(self):
        path = self.file("[coordinator]\nlease = 3s\nkey-max = 30\nlocking = none\n")
        shown = self.shown("redistinto-coordinator", "--config", path, "--lease", "5s",
                           env={"REDISTINTO_LEASE": "4s", "REDISTINTO_KEY_MAX": "31"})
        self.assertEqual([shown[o] for o in ("lease", "key-max", "locking", "wake-hold")],
                         ["5s ; flag", "31 ; environment REDISTINTO_KEY_MAX",
                          f"none ; {path}:4", "2s ; default"])

    def test_profile_sets_its_rules_unless_they_are_given(self):
        classic = self.shown("redistinto-coordinator", "--profile", "classic", "--key-max", "50")
        rules = ("key-max", "locking", "on-owner-down", "compaction")
        self.assertEqual([classic[o] for o in rules],
                         ["50 ; flag", "required ; profile", "forget ; profile",
                          "global ; profile"])
        default = self.shown("redistinto-coordinator")
        self.assertEqual([default[o] for o in rules],
                         ["255 ; default", "optional ; default", "keep ; default",
                          "local ; default"])

    def test_the_page_of_the_rules_says_what_the_profiles_set(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/classic.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| [^|]* \| (\w+) \| `--([a-z-]+)` \| `(\w+)`[^|]* \| `(\w+)`", page,
                          re.M)
        self.assertGreaterEqual(len(rows), 9)
        for service, option, default, classic in rows:
            for profile, value in (("default", default), ("classic", classic)):
                shown = self.shown("redistinto-" + service, "--profile", profile)
                self.assertEqual(shown[option].split(" ;")[0], value, (option, profile))

    def test_required_options_may_be_missing_from_what_is_shown(self):
        self.assertEqual(self.shown("redistinto-coordinator")["data-dir"].strip(" "),
                         "; unset (required)")
        options = self.shown_json("redistinto-instance")["options"]
        self.assertEqual([o["name"] for o in options if o["required"]], ["name", "data-dir"])
        for option in options:
            if option["required"]:
                self.assertEqual((option["value"], option["origin"]), (None, "unset"))

    def test_one_file_for_all(self):
        path = self.file("[common]\ncoordinator = c:1\nlog-level = warning\n"
                         "[coordinator]\nlog-level = debug\n[instance]\nentries = 5\n"
                         "[esi]\ntimeout = 8s\n[cli]\ntimeout = 9s\n[cli.dev]\ninstances = 7\n")
        coordinator = self.shown("redistinto-coordinator", "--config", path)
        instance = self.shown("redistinto-instance", "--config", path)
        esi = self.shown("redistinto-esi", "--config", path)
        cli = self.shown("redistinto", "--config", path)
        dev = self.shown("redistinto", "dev", "--config", path)
        self.assertEqual(coordinator["log-level"], f"debug ; {path}:5")
        self.assertEqual([instance[o].split(" ")[0] for o in ("log-level", "entries",
                                                               "coordinator")],
                         ["warning", "5", "c:1"])
        self.assertEqual([esi[o].split(" ")[0] for o in ("timeout", "coordinator")],
                         ["8s", "c:1"])
        self.assertEqual([cli[o].split(" ")[0] for o in ("timeout", "coordinator")],
                         ["9s", "c:1"])
        self.assertEqual([dev[o].split(" ")[0] for o in ("timeout", "instances")], ["9s", "7"])

    def test_the_documented_file(self):
        page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
        path = self.file(re.search(r"```ini\n(.*?)```", page, re.S).group(1))
        for program in BINARIES:
            self.assertIn(f" ; {path}:", run(program, "--print-config", "--config", path,
                                             "-o", "text").text())
        self.assertEqual(self.shown("redistinto", "dev", "-o", "text", "--config",
                                    path)["instances"].split(" ")[0], "5")

    def test_default_places(self):
        self.file("[common]\ncoordinator = xdg:1\n", "xdg/redistinto/redistinto.ini")
        self.file("[common]\ncoordinator = home:1\n", ".config/redistinto/redistinto.ini")
        named = self.file("[common]\ncoordinator = named:1\n")
        surroundings = {"REDISTINTO_CONFIG": "", "HOME": str(self.directory),
                        "XDG_CONFIG_HOME": str(self.directory / "xdg")}
        for changed, expected in (({}, "xdg:1"), ({"XDG_CONFIG_HOME": ""}, "home:1"),
                                  ({"REDISTINTO_CONFIG": str(named)}, "named:1")):
            for program in ("redistinto", "redistinto-instance", "redistinto-esi"):
                shown = self.shown(program, env={**surroundings, **changed})
                self.assertEqual(shown["coordinator"].split(" ")[0], expected, program)
                shown = self.shown(program, "--config", "/dev/null",
                                   env={**surroundings, **changed})
                self.assertEqual(shown["coordinator"], "127.0.0.1:7400 ; default")

    def test_what_is_shown_can_be_read(self):
        for program in BINARIES:
            option, value, _ = option_of(program)
            text = run(program, "--print-config", f"--{option}", value).text()
            path = self.file(text)
            self.assertTrue(self.shown(program, "--config", path)[option].startswith(
                f"{value} ; {path}:"))

    def test_the_cli_uses_its_file(self):
        path = self.file("[common]\ncoordinator = 127.0.0.1:2\n[cli]\noutput = json\n")
        result = run("redistinto", "keys", "--config", path)
        self.assertEqual((result.code, result.err), (5, b""))
        self.assertIn("127.0.0.1:2", result.json()["error"]["message"])

    def test_a_service_runs_by_its_file(self):
        path = self.file(f"[common]\nlog-level = debug\n[coordinator]\n"
                         f"listen = 127.0.0.1:0\ndata-dir = {self.directory}/data\n"
                         "exit-with-stdin = false\n")
        service = Service("redistinto-coordinator", "--config", path, directory=self.directory)
        self.addCleanup(service.process.kill)
        service.wait_ready()
        self.assertTrue((self.directory / "data" / "STORE_ID").exists())
        self.assertEqual(service.stop(), 0)
        self.assertIn("level=debug", service.logged())

    def test_dev_starts_its_services_without_the_machine_s_file(self):
        path = self.file("[instance]\nadvertise = 127.0.0.1:1\n[coordinator]\nkey-max = 1\n",
                         "xdg/redistinto/redistinto.ini")
        ready = self.directory / "ready"
        dev = subprocess.Popen(
            [binary("redistinto"), "dev", "--base-port", "0", "--instances", "1", "--ready-file",
             ready], stdout=subprocess.DEVNULL,
            env={**os.environ, "REDISTINTO_CONFIG": "", "XDG_CONFIG_HOME": str(path.parents[1])})
        self.addCleanup(dev.wait)
        self.addCleanup(dev.kill)
        wait_until(lambda: ready.exists() or dev.poll() is not None, "dev serves or ends")
        self.assertTrue(ready.exists())
        dev.send_signal(signal.SIGTERM)
        self.assertEqual(dev.wait(timeout=40), 0)


class Mistakes(ConfigurationCase):
    """A wrong configuration: exit code 2, the place, the name and what is valid."""

    def test_in_the_file(self):
        for program in BINARIES:
            section = SECTIONS[program]
            option, value, _ = option_of(program)
            valid = "a duration" if option == "timeout" else "error | warning | info | debug"
            for text, line, said in (
                    (f"[{section}]\n\nleese = 4s\n", 3, ["'leese'", f"[{section}]"]),
                    (f"[{section}]\n{option} = often\n", 2, [option, "often", valid]),
                    (f"[{section}]\n{option} = {value}\n{option} = {value}\n", 3,
                     ["set twice", "line 2"]),
                    ("\n[sections]\nx = 1\n", 2, ["[sections]", f"[{section}]"]),
                    ("x = 1\n", 1, ["before the first section"]),
                    ("[common]\nname = x\n", 2, ["'name'", "coordinator"]),
                    (f"[{section}]\nwhat\n", 2, ["name = value"]),
                    (f"[{section}]\n{option} = {'x' * 200}\n", 2, ["longer than 198 bytes"])):
                path = self.file(text)
                self.assert_refused(program, "--config", path,
                                    said=[f"{path}:{line}: ", *said])
                self.assert_refused(program, "--print-config", said=[f"{path}:{line}: ", *said],
                                    env={"REDISTINTO_CONFIG": str(path)})

    def test_of_a_verb(self):
        path = self.file("[cli.dev]\ninstances = 61\n")
        self.assert_refused("redistinto", "dev", "--config", path,
                            said=[f"{path}:2: ", "instances", "1..60"])
        # Another verb does not look at it.
        self.assertIn("timeout", self.shown("redistinto", "keys", "--config", path))
        path = self.file("[cli.nothing]\nx = 1\n")
        self.assert_refused("redistinto", "keys", "--config", path, said=["[cli.nothing]"])
        path = self.file("[cli.keys]\ninstances = 6\n")
        self.assert_refused("redistinto", "keys", "--config", path, said=["unknown option"])

    def test_as_json(self):
        path = self.file("[cli]\ntimeout = 0\n")
        result = run("redistinto", "-o", "json", "keys", "--config", path)
        self.assertEqual((result.code, result.err), (2, b""))
        self.assertIn(f"{path}:2: option 'timeout': ", result.json()["error"]["message"])

    def test_file_that_cannot_be_read(self):
        for program in BINARIES:
            self.assert_refused(program, "--config", self.directory / "absent",
                                said=["opening configuration file", "absent"])
            self.assert_refused(program, "--config", self.directory, said=["cannot be read"])

    def test_in_variables(self):
        for program in BINARIES:
            option, _, _ = option_of(program)
            variable = "REDISTINTO_" + option.upper().replace("-", "_")
            self.assert_refused(program, "--print-config", env={variable: "often"},
                                said=[variable, "often"])

    def test_addresses(self):
        for address in ("", "host", "host:", ":1", "host:65536", "a b:1", "::1:7400", "ipv4",
                        "unix:", "dns:///"):
            for arguments in (["redistinto", "read", "x"], ["redistinto-esi", "run", "/dev/null"],
                              ["redistinto-instance", "--name", "a", "--data-dir", "x"]):
                self.assert_refused(*arguments, "--coordinator", address, said=["--coordinator"])
        result = run("redistinto", "--coordinator", "", "read", "x", "-o", "json")
        self.assertEqual(result.json()["error"]["code"], "INVALID_ARGUMENT")


class WrongMachine(ConfigurationCase):
    """Options that are well formed and cannot be followed: exit code 2 as well."""

    def services(self, *arguments):
        return (["redistinto-coordinator", *arguments],
                ["redistinto-instance", "--name", "a", "--coordinator", "127.0.0.1:1", *arguments])

    def test_data_directory_that_cannot_be_made(self):
        for place in (self.directory / "absent" / "data", self.file("x") / "data",
                      "/proc/redistinto", ""):
            for program, *arguments in self.services("--listen", "127.0.0.1:0", "--data-dir",
                                                     place):
                self.assert_refused(program, *arguments, said=["data directory"])
            if place:
                self.assert_refused("redistinto", "dev", "--base-port", "0", "--data-dir", place,
                                    said=["directory"])

    def test_address_that_cannot_be_bound(self):
        for address in ("192.0.2.1:0", "[2001:db8::1]:0", "unix:/absent/socket"):
            for program, *arguments in self.services("--listen", address, "--data-dir",
                                                     self.directory / "data"):
                self.assert_refused(program, *arguments, "--log-level", "error", said=[address])

    def test_ready_file_of_dev_without_directory(self):
        self.assert_refused("redistinto", "dev", "--base-port", "0", "--ready-file",
                            self.directory / "absent" / "ready", said=["--ready-file", "absent"])
        result = run("redistinto", "dev", "-o", "json", "--base-port", "0", "--ready-file",
                     self.directory / "absent" / "ready")
        self.assertEqual((result.code, result.json()["error"]["code"]), (2, "INVALID_ARGUMENT"))

    def test_dev_without_its_services(self):
        for name in ("redistinto", "redistinto-coordinator"):
            shutil.copy(binary(name), self.directory)
            done = subprocess.run([self.directory / "redistinto", "dev", "--base-port", "0"],
                                  capture_output=True, check=False, timeout=40)
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            missing = "redistinto-coordinator" if name == "redistinto" else "redistinto-instance"
            self.assertIn(str(self.directory.resolve() / missing), done.stderr.decode())
            self.assertIn("installed", done.stderr.decode())


class Completion(ConfigurationCase):
    """What bash completes, by the script that `redistinto completion bash` prints."""

    DRIVE = '''
source "$1" || exit 1
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
spec=$(complete -p "${1##*/}") || exit 1
[[ $spec == "complete -F _redistinto ${1##*/}" ]] || exit 1
_redistinto
printf '%s\\n' "${COMPREPLY[@]}"
'''

    def setUp(self):
        super().setUp()
        self.script = self.directory / "script"
        self.script.write_bytes(run("redistinto", "completion", "bash").out)
        (self.directory / "a file").touch()
        (self.directory / "another").mkdir()

    def complete(self, *words):
        """The last word is the one under the cursor."""
        done = subprocess.run(["bash", "--norc", "-c", self.DRIVE, "bash", self.script, *words],
                              cwd=self.directory, capture_output=True, check=False, timeout=40)
        self.assertEqual((done.returncode, done.stderr), (0, b""), words)
        return done.stdout.decode().splitlines()

    def test_verbs(self):
        verbs = self.complete("redistinto", "")
        listed = re.findall(r"^  (\w+)  ", run("redistinto").text().partition("\nVerbs:\n")[2], re.M)
        self.assertEqual(verbs, listed)
        self.assertEqual(self.complete("/somewhere/redistinto", "stat"), ["status"])
        for before in (["-o", "json"], ["--coordinator", "127.0.0.1", ":", "7400"],
                       ["--coordinator", "=", "[", "::", "1]", ":", "7400", "-o", "text"],
                       ["--timeout", "=", "5s"], ["-ojson"], ["--help", "=", "true"]):
            self.assertEqual(self.complete("redistinto", *before, "inst"), ["instances"], before)
        for before in (["--coordinator", "host", ":"], ["--coordinator", "host"]):
            self.assertEqual(self.complete("redistinto", *before, ":"), [""], before)

    def test_every_option_of_every_command(self):
        commands = [[program] for program in BINARIES]
        commands += [["redistinto", verb] for verb in self.complete("redistinto", "")]
        for command in commands:
            text = run(*command, "--help").text()
            options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M)
            self.assertGreater(len(options), 4)
            self.assertEqual(sorted(self.complete(*command, "--")), sorted(options), command)
            self.assertEqual(set(self.complete(*command, "-")) - set(options),
                             set(re.findall(r"^  (-\w), --", text, re.M)), command)

    def test_values(self):
        for words, expected in (
                (["redistinto", "-o", ""], ["text", "json"]),
                (["redistinto", "keys", "--output", "j"], ["json"]),
                (["redistinto", "dev", "--profile", ""], ["default", "classic"]),
                (["redistinto", "dev", "--profile", "="], ["default", "classic"]),
                (["redistinto", "dev", "--profile", "=", "cl"], ["classic"]),
                (["redistinto-coordinator", "--lease", "3s", "--locking", ""],
                 ["optional", "required", "none"]),
                (["redistinto-instance", "--log-level", "w"], ["warning"]),
                (["redistinto-esi", "-o", ""], ["text", "json"]),
                (["redistinto-instance", "--entries", ""], [""]),
                (["redistinto", "esi", "dead"], ["deadlock"]),
                (["redistinto", "esi", "co"], ["continue", "continuar", "console"]),
                (["redistinto-esi", "s"], ["serve"]),
                (["redistinto", "completion", ""], ["bash", "zsh", "fish"])):
            self.assertEqual(self.complete(*words), expected, words)

    def test_files_and_directories(self):
        for words in (["redistinto", "--config", "a"], ["redistinto", "dev", "--ready-file", "a"],
                      ["redistinto-esi", "run", "a"], ["redistinto-esi", "run", "x", "y", "a"],
                      ["redistinto-esi", "run", "--", "a"]):
            self.assertEqual(sorted(self.complete(*words)), ["a file", "another"], words)
        for program in ("redistinto-coordinator", "redistinto-instance"):
            self.assertEqual(self.complete(program, "--data-dir", "a"), ["another"])

    def test_after_the_end_of_options(self):
        self.assertEqual(self.complete("redistinto", "--", "stat"), ["status"])
        self.assertEqual(self.complete("redistinto-coordinator", "--", "--"), [""])

    def test_as_json_and_other_shells(self):
        answer = run("redistinto", "completion", "bash", "-o", "json").json()
        self.assertEqual(list(answer), ["shell", "script"])
        self.assertEqual(answer["script"], self.script.read_text())
        self.assert_refused("redistinto", "completion", "csh", said=["'csh'", "bash"])

    def test_it_is_what_is_installed(self):
        self.assertEqual((BUILD / "docs" / "redistinto").read_bytes(), self.script.read_bytes())


class OtherShells(ConfigurationCase):
    """zsh and fish complete the same, by their own scripts."""

    # zsh completes on a terminal only: what its functions would be asked to add is printed.
    DRIVE_ZSH = '''
compdef() { [[ $1 == _redistinto_complete ]] || exit 1; }
compadd() { shift; print -rl -- "${(@M)@:#${PREFIX}*}"; }
compset() { PREFIX=${PREFIX#*=}; }
_files() {
    local only=file
    [[ $1 == -/ ]] && only=directory
    print -r -- "<$only>"
}
source "$1" || exit 1
shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
_redistinto_complete
'''

    def script_of(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is missing")
        path = self.directory / shell
        path.write_bytes(run("redistinto", "completion", shell).out)
        self.assertEqual(subprocess.run([shell, "-n", path], capture_output=True, check=False,
                                        timeout=40).stderr, b"")
        return path

    def zsh(self, script, *words):
        done = subprocess.run(["zsh", "-f", "-c", self.DRIVE_ZSH, "zsh", script, *words],
                              cwd=self.directory, capture_output=True, check=False, timeout=40)
        self.assertEqual(done.stderr, b"", words)
        return [line for line in done.stdout.decode().splitlines() if line]

    def fish(self, script, *words):
        environment = {**os.environ, "HOME": str(self.directory), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["fish", "--no-config", "-c",
                               f"source {script}; complete -C $argv[1]", " ".join(words)],
                              cwd=self.directory, capture_output=True, check=False, timeout=40,
                              env=environment)
        self.assertEqual(done.stderr, b"", words)
        return [line.split("\t")[0] for line in done.stdout.decode().splitlines()]

    def check(self, complete):
        verbs = run("redistinto").text().partition("\nVerbs:\n")[2]
        listed = re.findall(r"^  (\w+)  ", verbs, re.M)
        self.assertEqual(sorted(complete("redistinto", "")), sorted(listed))
        self.assertEqual(complete("/somewhere/redistinto", "stat"), ["status"])
        self.assertEqual(complete("redistinto", "--coordinator", "h:7400", "-o", "json", "inst"),
                         ["instances"])
        self.assertEqual(complete("redistinto", "--", "stat"), ["status"])
        self.assertEqual(complete("redistinto-coordinator", "--", "--"), [])
        for words, expected in (
                (["redistinto", "-o", ""], ["json", "text"]),
                (["redistinto", "keys", "--output", "j"], ["json"]),
                (["redistinto", "dev", "--profile", ""], ["classic", "default"]),
                (["redistinto-coordinator", "--lease", "3s", "--locking", "req"], ["required"]),
                (["redistinto-instance", "--log-level", "w"], ["warning"]),
                (["redistinto-instance", "--entries", ""], []),
                (["redistinto", "completion", ""], ["bash", "fish", "zsh"])):
            self.assertEqual(sorted(complete(*words)), expected, words)
        for command in (*([program] for program in BINARIES),
                        *(["redistinto", verb] for verb in listed)):
            text = run(*command, "--help").text()
            options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M)
            self.assertEqual(sorted(complete(*command, "--")), sorted(options), command)

    def test_zsh(self):
        script = self.script_of("zsh")
        self.check(lambda *words: self.zsh(script, *words))
        self.assertEqual(self.zsh(script, "redistinto", "dev", "--profile=cl"), ["classic"])
        for words in (["redistinto", "--config", "a"], ["redistinto-esi", "run", "a"],
                      ["redistinto-esi", "run", "x", "y", "a"]):
            self.assertEqual(self.zsh(script, *words), ["<file>"], words)
        self.assertEqual(self.zsh(script, "redistinto-instance", "--data-dir", "a"),
                         ["<directory>"])
        self.assertEqual((BUILD / "docs" / "_redistinto").read_bytes(), script.read_bytes())

    def test_fish(self):
        script = self.script_of("fish")
        (self.directory / "another").mkdir()
        (self.directory / "afile").touch()
        self.check(lambda *words: self.fish(script, *words))
        self.assertEqual(self.fish(script, "redistinto", "dev", "--profile=cl"),
                         ["--profile=classic"])
        for words in (["redistinto", "--config", "a"], ["redistinto-esi", "run", "a"],
                      ["redistinto-esi", "run", "x", "y", "a"]):
            self.assertEqual(sorted(self.fish(script, *words)), ["afile", "another/"], words)
        self.assertEqual(self.fish(script, "redistinto-instance", "--data-dir", "a"), ["another/"])
        self.assertEqual((BUILD / "docs" / "redistinto.fish").read_bytes(), script.read_bytes())


class Manual(ConfigurationCase):
    """Pages in section 1."""

    def page(self, program):
        return BUILD / "docs" / f"{program}.1"

    @unittest.skipIf(shutil.which("groff") is None, "groff is not installed")
    def test_pages_render_without_warnings(self):
        for program in BINARIES:
            done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-c", self.page(program)],
                                  capture_output=True, check=False, timeout=40)
            self.assertEqual((done.returncode, done.stderr), (0, b""), program)
            text = re.sub(r".\x08", "", done.stdout.decode("ascii"))
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS",
                            "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"):
                self.assertRegex(text, rf"(?m)^{heading}$")
            self.assertRegex(text, rf"(?m)^ +{program} - \w")
            words = " ".join(text.split())
            for option in re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", run(program, "--help").text(),
                                     re.M):
                self.assertIn(f"{option} ", words)

    def test_every_verb(self):
        text = self.page("redistinto").read_text()
        for verb in re.findall(r"^  (\w+)  ", run("redistinto").text().partition("\nVerbs:\n")[2],
                               re.M):
            self.assertRegex(text, rf'(?m)^\.SS "{verb}[" ]')


if __name__ == "__main__":
    tap.main()
