"""What stands between a candidate and the computer, on every kind of computer that can be played here."""

import errno
import os
import platform
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from engine.runner import cgroups, landlock, layers, seccomp
from engine.runner.client import RunnerClient, run_one
from engine.runner.isolation import IsolationCheck, notice_sentence
from engine.runner.layers import ROOT, BadEnvironment, Layers
from engine.runner.protocol import ConsentNeeded, Isolation, RunTests, TestFinished, TestStarted
from tests.engine.runner.conftest import Bench, Witness

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
TESTS = "assert add(1, 2) == 3\nassert add(2, 2) == 4\nassert add(0, 0) == 0\n"
OPEN = IsolationCheck(Layers(), True, frozenset())
FENCED = pytest.mark.skipif(landlock.version() < landlock.NEEDED, reason="this kernel has no Landlock of version 6")


def test_an_installed_program_is_hidden_where_its_package_folder_is_shown() -> None:
    assert layers.hidden(["/usr"]) == []
    assert layers.hidden([str(ROOT.parent)]) == [str(ROOT / name) for name in ("app", "engine", "kernels", "resources")]
    assert layers.hidden([f"{ROOT.parent}/{ROOT.name[:-1]}"]) == []


@pytest.fixture
def without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def without_sandbox(without_bubblewrap: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither bubblewrap nor Landlock."""
    code = "from engine.runner import landlock, service; landlock.version = lambda: 0; service.main()"
    monkeypatch.setattr(RunnerClient, "program", ("-c", code))
    return without_bubblewrap


class TestOpen:
    def test_a_person_is_asked_first(self, without_sandbox: Path, own_bench: Bench) -> None:
        own_bench.client.test(RunTests("1", f"open({str(without_sandbox / 'ran')!r}, 'w')\n" + ADD, TESTS))
        asked = own_bench.until(lambda a: not isinstance(a, Isolation))
        assert isinstance(asked, ConsentNeeded)
        assert asked.kind == "consent"
        assert "bubblewrap is not installed" in asked.sentence
        assert "delete your files" in asked.sentence
        assert not (without_sandbox / "ran").exists()
        assert run_one(ADD, TESTS).why == asked.sentence

        own_bench.client.test(RunTests("1", ADD, TESTS, consent=True))
        report = own_bench.finish("1")["1"]
        assert report.verdict == "pass"
        assert report.isolation["files"] == OPEN.isolation("split")["files"]
        assert {"files", "network", "processes"} <= set(report.weak)
        own_bench.client.test(RunTests("2", WRONG, TESTS, consent=True))
        assert own_bench.finish("2")["2"].why == "line 1: assert -1 == 3\n +  where -1 = add(1, 2)"

    def test_a_detached_process_is_ended_too(self, without_sandbox: Path, own_bench: Bench) -> None:
        detaches = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
"""
        tests = TESTS + "import time\ntime.sleep(0.3)\nassert True\n"
        own_bench.client.test(RunTests("1", detaches + ADD, tests, consent=True))
        own_bench.until(lambda a: isinstance(a, TestStarted))
        with Witness(own_bench.service) as witness:
            assert own_bench.finish("1")["1"].verdict == "pass"
        assert len(witness.seen) >= 3
        own_bench.client.close()
        assert witness.left() == []

    def test_a_sandbox_that_does_not_work_is_not_believed(self, without_sandbox: Path, own_bench: Bench) -> None:
        fake = without_sandbox / "bwrap"
        fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        fake.chmod(0o755)
        own_bench.client.test(RunTests("1", ADD, TESTS))
        asked = own_bench.until(lambda a: isinstance(a, ConsentNeeded | TestFinished))
        assert isinstance(asked, ConsentNeeded)
        assert "No permissions to create new namespace" in asked.sentence

    def test_a_sandbox_that_holds_nothing_back_is_not_believed(self, without_sandbox: Path, own_bench: Bench) -> None:
        fake = without_sandbox / "bwrap"
        strip = 'while [ "$1" != -- ]; do shift; done\nshift\ncd /tmp\n'
        fake.write_text(f'#!/bin/sh\n{strip}PYTHONPATH={ROOT} exec "$@"\n')
        fake.chmod(0o755)
        found = own_bench.probe()
        assert not found.sealed
        assert found.isolation["files"] == OPEN.isolation("split")["files"]
        assert found.note.startswith("bubblewrap does not work: ")


SNOOPS = """
import os, socket
def add(a, b):
    found = []
    def attempt(name, act):
        try:
            act()
            found.append(name)
        except OSError:
            pass
    attempt("file", lambda: open(@FILE@).read())
    attempt("folder", lambda: os.listdir(os.path.dirname(@FILE@)))
    attempt("write", lambda: open(@FILE@ + "2", "w"))
    attempt("unlink", lambda: os.unlink(@FILE@))
    attempt("signal", lambda: os.kill(@PID@, 0))
    attempt("process", lambda: open("/proc/@PID@/environ").read())
    attempt("network", lambda: socket.create_connection(("127.0.0.1", @PORT@), 1))
    attempt("unix", lambda: socket.socket(socket.AF_UNIX))
    return found
"""


@FENCED
class TestFenced:
    """No bubblewrap: Landlock and a filter of system calls, after consent."""

    def test_a_person_is_told_what_is_weak(self, without_bubblewrap: Path, own_bench: Bench) -> None:
        own_bench.client.test(RunTests("1", ADD, TESTS))
        asked = own_bench.until(lambda a: not isinstance(a, Isolation))
        assert isinstance(asked, ConsentNeeded)
        for word in ("bubblewrap is not installed", "Landlock", "could leave one behind"):
            assert word in asked.sentence
        own_bench.client.test(RunTests("1", ADD, TESTS, consent=True))
        report = own_bench.finish("1")["1"]
        assert (report.verdict, report.mode) == ("pass", "split")
        assert {"files", "processes"} <= set(report.weak)
        assert report.isolation["network"] == "None: sockets are refused."

    def test_what_it_keeps(self, without_bubblewrap: Path, own_bench: Bench) -> None:
        secret = without_bubblewrap / "secret"
        secret.write_text("PLANTED")
        with socket.create_server(("127.0.0.1", 0)) as door:
            fields = {"@FILE@": repr(str(secret)), "@PID@": str(os.getpid()), "@PORT@": str(door.getsockname()[1])}
            solution = SNOOPS
            for field, value in fields.items():
                solution = solution.replace(field, value)
            own_bench.client.test(RunTests("1", solution, "assert add(1, 2) == []\n", consent=True))
            report = own_bench.finish("1")["1"]
        assert report.verdict == "pass", report.why
        assert secret.read_text() == "PLANTED"


@pytest.mark.sandbox
def test_what_bubblewrap_keeps_by_every_layer(bench: Bench) -> None:
    found = bench.isolation
    assert found.sealed
    assert found.isolation.keys() == {"files", "network", "memory", "processes", "verdict"}
    assert set(found.weak) <= {"memory"}  # a computer may keep no groups
    assert ("no limit on their sum" in found.isolation["memory"]) == ("memory" in found.weak)
    assert found.words.startswith("The tests run code that a model wrote on this computer. It gets no network")


@pytest.mark.sandbox
def test_root_has_groups_of_the_kernel(bench: Bench) -> None:
    if cgroups.find() is None:
        pytest.skip("no group of the kernel's can be made here: neither version 2 nor 1, as this user")
    assert bench.isolation.weak == ()
    report = bench.run("x = [bytearray(64 << 20) for _ in range(3)]\ndef add(a, b): return a + b\n", TESTS)
    assert report.verdict == "pass"
    assert report.peak_mib is not None
    assert 192 < report.peak_mib < 400


@pytest.mark.sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs every other test of this kind already")
@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "namespaces blocked"])
def test_an_ordinary_user(namespaces: bool, tmp_path: Path) -> None:
    """Root plays one, in a view of the computer where that user can reach the interpreter."""
    if not namespaces and landlock.version() < landlock.NEEDED:
        pytest.skip("this kernel has no Landlock of version 6, the fallback for blocked namespaces")
    code = (
        "import os; from engine.runner.client import check_isolation, run_one; l = check_isolation(); "
        f"r = run_one({ADD!r}, {TESTS!r}, consent={not namespaces}); "
        "print(os.getuid(), l.sealed, 'memory' in l.weak, r.verdict, r.why, '|', l.note)"
    )
    shown = ["--dev-bind", "/", "/", "--tmpfs", "/root"]
    for folder in {sys.base_prefix, sys.prefix, str(ROOT)}:
        for parent in reversed(Path(folder).parents):
            if parent.is_relative_to("/root"):
                shown += ["--perms", "0755", "--dir", str(parent)]
        shown += ["--ro-bind", folder, folder]
    if namespaces:
        user = ["setpriv", "--reuid", "61000", "--regid", "61000", "--clear-groups"]
    else:
        shown += ["--unshare-user", "--uid", "61000", "--gid", "61000", "--disable-userns"]
        user = []
    done = subprocess.run(
        ["bwrap", *shown, "--die-with-parent", "--chdir", str(ROOT), *user, sys.executable, "-B", "-c", code],
        capture_output=True,
        text=True,
        timeout=90,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    said, _, note = done.stdout.partition(" | ")
    assert said.strip() == f"61000 {namespaces} True pass", (done.stdout, done.stderr)
    assert (note.strip() == "") == namespaces
    if not namespaces:
        assert note.startswith("bubblewrap does not work: ")


def test_no_group_of_the_kernel_outlives_its_service(own_bench: Bench) -> None:
    if cgroups.find() is None:
        pytest.skip("no group of the kernel's can be made here")
    assert own_bench.run(ADD, TESTS, consent=True).verdict == "pass"
    name = f"bassline-{own_bench.service.pid}"
    places = [Path("/sys/fs/cgroup", *line.split(":")[1:2], line.split(":", 2)[2].lstrip("/")) for line in own_groups()]
    assert any((place / name).exists() for place in places)
    own_bench.client.close()
    assert [place for place in places if (place / name).exists()] == []


def own_groups() -> list[str]:
    return Path("/proc/self/cgroup").read_text().splitlines()


class TestGroups:
    """Version 2 cannot be had everywhere; its files are played by ordinary ones."""

    def tree(self, folder: Path, controllers: str = "cpu memory pids") -> Path:
        base = folder / "user.slice/run.scope"
        base.mkdir(parents=True)
        (base / "cgroup.controllers").write_text(controllers)
        return base

    def test_version_2_limits_a_leaf_and_reads_the_limit_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        base, make = self.tree(tmp_path), Path.mkdir

        def mkdir(path: Path, *args: object, **more: object) -> None:
            make(path, *args, **more)
            for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.kill"):
                (path / name).write_text("")

        monkeypatch.setattr(Path, "mkdir", mkdir)
        groups = cgroups.find(tmp_path, "0::/user.slice/run.scope\n")
        assert groups is not None
        assert groups.version == 2
        assert (base / "bassline-service/cgroup.procs").read_text() == "0"
        assert (base / "cgroup.subtree_control").read_text() == "+memory +pids"
        leaf = groups.leaf(1 << 20, 7)
        assert leaf is not None
        (folder,) = leaf.folders
        kept = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")}
        assert kept == {"memory.max": str(1 << 20), "memory.swap.max": "0", "pids.max": "7"}
        leaf.kill()
        assert (folder / "cgroup.kill").read_text() == "1"
        (folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        (folder / "memory.peak").write_text(str(3 << 19))
        assert leaf.ran_out_of_memory
        assert leaf.peak_mib == 1.5

    @pytest.mark.parametrize("controllers", ["cpu", "memory", ""])
    def test_without_the_controllers_there_are_none(self, controllers: str, tmp_path: Path) -> None:
        self.tree(tmp_path, controllers)
        assert cgroups.find(tmp_path, "0::/user.slice/run.scope\n") is None

    def test_a_limit_that_is_ignored_is_no_limit(self, tmp_path: Path) -> None:
        """As version 1 does to ordinary users: folders can be made, and hold nothing."""
        for controller in ("memory", "pids"):
            (tmp_path / controller).mkdir()
        assert cgroups.find(tmp_path, "4:memory:/\n8:pids:/\n") is None
        assert list(tmp_path.glob("*/bassline-*/*")) == []

    def test_what_a_killed_service_left_is_taken_away(self, tmp_path: Path) -> None:
        left = tmp_path / "memory/bassline-999999999/3"
        left.mkdir(parents=True)
        (tmp_path / "pids").mkdir()
        cgroups.find(tmp_path, "4:memory:/\n8:pids:/\n")
        assert not left.parent.exists()

    def test_an_ordinary_user_asks_systemd_for_a_scope(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "cgroup.controllers").write_text("memory pids")
        program = tmp_path / "systemd-run"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        monkeypatch.setattr(cgroups, "_MOUNT", tmp_path)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setenv("PATH", str(tmp_path))
        command = cgroups.delegated_command(["python", "-m", "x"])
        assert command is not None
        assert command[:3] == [str(program), "--user", "--scope"]
        assert "Delegate=yes" in command
        assert command[-5:] == ["env", "BASSLINE_SCOPE=1", "python", "-m", "x"]
        program.write_text("#!/bin/sh\nexit 1\n")  # no session bus
        assert cgroups.delegated_command(["python"]) is None
        monkeypatch.setenv("BASSLINE_SCOPE", "1")
        assert cgroups.delegated_command(["python"]) is None


class TestFilter:
    def run(self, program: bytes, number: int, *arguments: int, architecture: int = 0xC000003E) -> int:
        """What the filter answers to a system call: the few instructions that it is made of, played."""
        data = struct.pack("=II8xQQQQQQ", number, architecture, *(*arguments, *[0] * (6 - len(arguments))))
        code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
        at, register = 0, 0
        while True:
            operation, yes, no, value = code[at]
            at += 1
            match operation:
                case 0x20:
                    (register,) = struct.unpack_from("=I", data, value)
                case 0x15:
                    at += yes if register == value else no
                case 0x35:
                    at += yes if register >= value else no
                case 0x45:
                    at += yes if register & value else no
                case 0x06:
                    return int(value)
                case _:
                    raise AssertionError(operation)

    ALLOW, ERRNO = 0x7FFF0000, 0x00050000

    def test_x86_64(self) -> None:
        program = seccomp.program("x86_64")
        for number in (0, 1, 2, 9, 57, 61, 202, 231):  # read, write, open, mmap, fork, wait4, futex, exit_group
            assert self.run(program, number) == self.ALLOW
        for number in (
            101,
            165,
            272,
            308,
            310,
            321,
            323,
            298,
            425,
        ):  # ptrace, mount, unshare, setns ...
            assert self.run(program, number) == self.ERRNO | errno.EPERM
        assert self.run(program, 435) == self.ERRNO | errno.ENOSYS  # clone3
        assert self.run(program, 56, 0x11) == self.ALLOW
        assert self.run(program, 56, 0x10000000 | 0x11) == self.ERRNO | errno.EPERM  # a user namespace
        assert self.run(program, 16, 1, 0x5401) == self.ALLOW
        assert self.run(program, 16, 1, 0x5412) == self.ERRNO | errno.EPERM  # TIOCSTI
        assert [self.run(program, 41, family) == self.ALLOW for family in (1, 2, 10, 16, 17, 38, 40)] == [True] * 3 + [
            False
        ] * 4
        assert self.run(program, 0x40000000) == self.ERRNO | errno.ENOSYS
        assert self.run(program, 0, architecture=0x40000003) == 0x80000000  # 32-bit calls end the process

    def test_aarch64(self) -> None:
        program = seccomp.program("aarch64")
        arm = {"architecture": 0xC00000B7}
        assert self.run(program, 63, **arm) == self.ALLOW  # read
        for number in (117, 40, 97, 268, 280, 425):  # ptrace, mount, unshare, setns, bpf, io_uring_setup
            assert self.run(program, number, **arm) == self.ERRNO | errno.EPERM
        assert self.run(program, 198, 40, **arm) == self.ERRNO | errno.EAFNOSUPPORT
        assert self.run(program, 198, 2, **arm) == self.ALLOW

    def test_without_sockets(self) -> None:
        program = seccomp.program("x86_64", sockets=False)
        assert all(self.run(program, 41, f) == self.ERRNO | errno.EAFNOSUPPORT for f in (1, 2, 10, 16))

    def test_the_numbers_are_the_kernel_s(self) -> None:
        header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
        if platform.machine() != "x86_64" or not header.exists():
            pytest.skip("the kernel's table of x86-64 is not installed here")
        known = {name: int(n) for name, n in re.findall(r"__NR_(\w+) (\d+)", header.read_text())}
        ours = dict(pair.split("=") for pair in (seccomp._X86_64 + seccomp._SAME_EVERYWHERE).split())
        assert {name: int(number) for name, number in ours.items()} == {name: known[name] for name in ours}

    def test_an_unknown_machine_has_none_and_the_layer_says_so(self) -> None:
        assert seccomp.program("s390x") == b""
        held = IsolationCheck(Layers("bubblewrap", "bwrap"), True, frozenset({"test_verdict"}))
        assert "network" in held.weak("split")
        assert "not filtered here" in held.isolation("split")["network"]


class TestEnvironment:
    def venv(self, folder: Path, version: str = "") -> Path:
        version = version or f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = folder / "venv/lib" / version / "site-packages"
        packages.mkdir(parents=True)
        (packages / "my_library.py").write_text("ANSWER = 42\n")
        return folder / "venv"

    @pytest.mark.sandbox
    def test_the_person_s_own_packages_are_shown_read_only_and_said_so(self, tmp_path: Path, bench: Bench) -> None:
        venv = self.venv(tmp_path)
        solution = "import my_library as m, os\ndef add(a, b): return m.ANSWER, os.access(m.__file__, os.W_OK)\n"
        tests = "import my_library\nassert add(1, 2) == (my_library.ANSWER, False)\n"
        own = {"same_process": True}  # nobody knows what objects such a library has, so that is asked beforehand
        report = bench.run(solution, tests, environment=str(venv), **own)
        assert report.verdict == "pass", report.why
        assert "and your environment is visible, read-only" in report.isolation["files"]
        assert "No module named 'my_library'" in bench.run(solution, tests, **own).why

    def test_one_of_another_python_is_refused_in_words(self, tmp_path: Path) -> None:
        with pytest.raises(BadEnvironment, match=r"is for python2\.7; the tests need one for python3"):
            layers.environment(str(self.venv(tmp_path, "python2.7")))
        with pytest.raises(BadEnvironment, match="There is no Python environment in"):
            layers.environment(str(tmp_path / "nowhere"))
        assert layers.environment("") == ()

    def test_one_that_cannot_be_read_says_why(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def is_file(path: Path) -> bool:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "is_file", is_file)
        with pytest.raises(BadEnvironment, match=r"^The environment .*/venv cannot be read: Permission denied\.$"):
            layers.environment(str(tmp_path / "venv"))

    def test_the_interpreter_of_one_may_be_named_though_it_is_a_link_out_of_it(self, tmp_path: Path) -> None:
        venv = self.venv(tmp_path)
        (venv / "bin").mkdir()
        (venv / "bin/python").symlink_to(sys.executable)
        assert layers.environment(str(venv / "bin/python")) == layers.environment(str(venv))
        (tmp_path / "link").symlink_to(venv)
        assert layers.environment(str(tmp_path / "link")) == layers.environment(str(venv))


def test_the_first_words_say_what_is_kept_and_what_is_not() -> None:
    everything = frozenset(
        f"test_{n}" for n in ("verdict", "user", "files", "network", "families", "processes", "number", "memory")
    )
    sealed = Layers("bubblewrap", "bwrap")
    assert "Not everything holds" not in notice_sentence(IsolationCheck(sealed, True, everything))
    assert "see memory in the test log" in notice_sentence(IsolationCheck(sealed, False, everything))
    assert "There is no sandbox here" in notice_sentence(IsolationCheck(Layers(), True, everything, "why"))
