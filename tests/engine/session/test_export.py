"""Saved files: every byte, whole or not at all, never over another one unasked."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.contract import CandidateFinished, ModelChoice, Ready, Request, RunFinished
from engine.runner.report import Report, TestResult
from engine.session.export import (
    AlreadyExists,
    CannotSave,
    Changed,
    NotOurs,
    check_file,
    check_folder,
    export_json,
    export_run,
    export_with_tests,
    replace_file,
    save,
    suggested_name,
)
from engine.session.provenance import Provenance
from engine.session.run import Run

PASS = Report("pass", "split", tests=(TestResult("1", "passed"),))
FAIL = Report("fail", "split", tests=(TestResult("1", "failed", "assert 1 == 2"),))


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "x = 1\n",
        "a\r\nb\rc\n\n",
        "\ufeffx = 1\n",
        "x =\u00a0'\u2028\u2029\x85\x0c'\n",
        "\tif 1:\n        x \n",
        "print('\x1b[31m<T>&amp;\u202e')",
        "x = '\x00😀\ud800'",
        "",
    ],
)
def test_every_byte(tmp_path: Path, text: str) -> None:
    saved = save(tmp_path / "a.py", text)
    assert saved.read_bytes() == text.encode("utf-8", "surrogatepass")
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_an_existing_file_is_not_touched_unasked(tmp_path: Path) -> None:
    path = save(tmp_path / "a.py", "old")
    with pytest.raises(AlreadyExists, match=r"a\.py exists already") as caught:
        save(path, "new")
    assert (caught.value.path, path.read_text()) == (path, "old")
    save(path, "new", overwrite=True)
    assert path.read_text() == "new"


def test_a_file_that_appears_while_saving_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    monkeypatch.setattr(os, "fsync", lambda descriptor: path.write_text("somebody else's"))
    with pytest.raises(AlreadyExists):
        save(path, "ours")
    assert path.read_text() == "somebody else's"
    assert list(tmp_path.iterdir()) == [path]


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = save(tmp_path / "a.py", "x")
    assert path.read_text() == "x"
    with pytest.raises(AlreadyExists):
        save(path, "y")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.py", "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotSave, match="the disk is full; choose another place"):
        save(path, "new", overwrite=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_one_may_not_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "denied")  # chmod would not stop root

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CannotSave, match="you may not write there"):
        save(tmp_path / "a.py", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CannotSave, match="part of the path is a file"):
        save(tmp_path / "out" / "a.py", "x")
    with pytest.raises(AlreadyExists):
        check_folder(tmp_path / "out")


def test_mode_and_link_of_an_overwritten_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("old")
    real.chmod(0o755)
    link.symlink_to(real)
    save(link, "new", overwrite=True)
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o755)


def test_a_new_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert save(tmp_path / "a.py", "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_names_with_blanks_and_other_scripts(tmp_path: Path) -> None:
    assert save(tmp_path / "новая папка" / "ä 中 😀.py", "x").read_text() == "x"


def a_run(*answers: str, tests: str = "") -> Run:
    run = Run("r", Request("Write f.", seed=7, candidates=len(answers)), tests)
    run.provenance = Provenance(ModelChoice("m"), Ready("m", "cpu", "int8", 4096))
    for number, text in enumerate(answers, 1):
        run.apply(CandidateFinished("r", number, "done", "stop", text, 9, 8, 6, -0.1 * number, 1.0))
    run.apply(RunFinished("r", "finished"))
    return run


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("python", "candidate-1.py"),
        ("py", "candidate-1.py"),
        ("", "candidate-1.py"),
        ("go", "candidate-1.go"),
        ("c++", "candidate-1.cpp"),
        ("Rust", "candidate-1.rs"),
        ("klingon", "candidate-1.txt"),
    ],
)
def test_suggested_name(tag: str, name: str) -> None:
    assert suggested_name(a_run(f"```{tag}\nx\n```"), 1) == name


def test_a_whole_run(tmp_path: Path) -> None:
    run = a_run("```python\r\nx = 1\r\n```", "```go\ny\n```", " ", tests="\ufeffassert x == 1\r\n")
    run.record(1, FAIL, 1.0)
    run.record(2, PASS, 2.0)
    files = export_run(run, tmp_path / "out")
    there = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert {path.name for path in files} == set(there)
    record = json.loads(there.pop("result.json"))
    assert there == {
        "best.go": b"y\n",
        "candidate-1.py": b"x = 1\r\n",
        "candidate-2.go": b"y\n",
        "tests.py": "\ufeffassert x == 1\r\n".encode(),
    }
    assert record["best"] == 2
    assert record["request"]["seed"] == 7
    assert record["models"]["model"] == "m"
    assert record["loaded"]["precision"] == "int8"
    assert record["reports"]["1"]["tests"][0]["why"] == "assert 1 == 2"
    assert [candidate["id"] for candidate in record["candidates"]] == [1, 2, 3]
    assert record["versions"]["python"]


def test_no_best_when_no_candidate_passes(tmp_path: Path) -> None:
    run = a_run("```\nx\n```", tests="assert 0")
    run.record(1, FAIL, 1.0)
    assert [path.name for path in export_run(run, tmp_path)] == ["candidate-1.py", "tests.py", "result.json"]
    assert json.loads((tmp_path / "result.json").read_text())["best"] is None


def test_best_without_tests_is_the_first_of_the_ranking(tmp_path: Path) -> None:
    export_run(a_run("```\na\n```", "```\nb\n```"), tmp_path)
    assert (tmp_path / "best.py").read_text() == "a\n"


def test_tests_of_nothing_but_blanks_are_none(tmp_path: Path) -> None:
    export_run(a_run("```\na\n```", tests=" \n\n"), tmp_path)
    assert (tmp_path / "best.py").read_text() == "a\n"
    assert json.loads((tmp_path / "result.json").read_text())["best"] == 1


@pytest.mark.parametrize("name", ["candidate-9.py.orig", "best.py~", "candidate-3.python", "my-best.py"])
def test_a_file_whose_name_only_begins_or_ends_like_ours_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    (tmp_path / "result.json").write_text(json.dumps({"format": 1, "files": [name]}))
    check_folder(tmp_path, overwrite=True)
    export_run(a_run("```\nc\n```"), tmp_path, overwrite=True)
    assert (tmp_path / name).read_text() == "mine"


def test_a_second_run_into_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    export_run(a_run("```\na\n```", "```\nb\n```", tests="assert 1"), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(AlreadyExists):
        export_run(a_run("```\nc\n```"), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    export_run(a_run("```\nc\n```"), tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.py", "candidate-1.py", "notes.md", "result.json"]
    assert (tmp_path / "best.py").read_text() == "c\n"


def test_overwriting_spares_what_no_export_left_there(tmp_path: Path) -> None:
    for name in ("tests.py", "best.pdf", "candidate-7.docx"):
        (tmp_path / name).write_text("mine")
    for _ in range(2):
        export_run(a_run("```\nc\n```"), tmp_path, overwrite=True)
    there = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {name for name, text in there.items() if text == "mine"} == {"tests.py", "best.pdf", "candidate-7.docx"}
    assert there["best.py"] == "c\n"


@pytest.mark.parametrize("name", ["tests.py", "candidate-1.py", "best.go", "result.json"])
def test_somebody_elses_file_is_never_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"files": ["candidate-1.py"]}')
    run = a_run("```\nc\n```", tests="assert 1")
    with pytest.raises(NotOurs, match=f"{name} is no file of an earlier export"):
        check_folder(tmp_path, overwrite=True)
    with pytest.raises(NotOurs):
        export_run(run, tmp_path, overwrite=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: '{"files": ["candidate-1.py"]}'}


def test_a_record_cannot_name_files_elsewhere_or_folders(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "candidate-9.py").mkdir(parents=True)
    (tmp_path / "candidate-8.py").write_text("mine")
    (out / "notes.md").write_text("mine")
    names = ["../candidate-8.py", "notes.md", "candidate-9.py", "candidate-5.py", 7]
    (out / "result.json").write_text(json.dumps({"format": 1, "files": names}))
    export_run(a_run("```\nc\n```"), out, overwrite=True)
    assert (tmp_path / "candidate-8.py").exists()
    assert (out / "notes.md").exists()
    assert (out / "candidate-9.py").is_dir()


def test_a_whole_run_in_one_file(tmp_path: Path) -> None:
    run = a_run("```python\nx = 1\n```", "```\n\u2028\ud800\n```", tests="assert x == 1\r\n")
    run.record(1, FAIL, 1.0)
    path = export_json(run, tmp_path / "run.json")
    record = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    assert [candidate["text"] for candidate in record["candidates"]] == [c.text for c in run.candidates.values()]
    assert (record["test_file"], record["request"]["seed"], record["files"]) == ("assert x == 1\r\n", 7, [])
    assert record["reports"]["1"]["lamps"] == {}
    with pytest.raises(AlreadyExists):
        export_json(run, path)
    assert export_json(run, path, overwrite=True) == path


def test_code_with_its_tests_runs_where_it_lies(tmp_path: Path) -> None:
    run = a_run("```python\nx = 1\n```", tests="from solution import x\n\ndef test_x():\n    assert x == 1\n")
    files = export_with_tests(run, 1, tmp_path / "out")
    assert [path.name for path in files] == ["solution.py", "tests.py"]
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "tests.py"], cwd=tmp_path / "out", check=False)
    assert ran.returncode == 0


def test_code_with_tests_spares_what_is_there(tmp_path: Path) -> None:
    run = a_run("```go\nx\n```", tests="ours")
    (tmp_path / "tests.py").write_text("mine")
    with pytest.raises(AlreadyExists, match=r"tests\.py exists already"):
        export_with_tests(run, 1, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tests.py"]
    export_with_tests(run, 1, tmp_path, overwrite=True)
    assert (tmp_path / "solution.go").read_text() == "x\n"
    assert (tmp_path / "tests.py").read_text() == "ours"


def test_a_check_tries_to_write_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folder(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotSave, match="part of the path is a file"):
        check_folder(tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(CannotSave, match="you may not write there"):
        check_folder(tmp_path, overwrite=True)


class TestReplacingAFile:
    def test_the_file_says_something_else_and_keeps_its_mode(self, tmp_path: Path) -> None:
        path = tmp_path / "a.py"
        path.write_bytes(b"x = 1\n")
        path.chmod(0o640)
        assert replace_file(path, b"x = 1\n", "y = 2\n") == path
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"y = 2\n", 0o640)
        assert [one.name for one in tmp_path.iterdir()] == ["a.py"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real.py").write_bytes(b"x = 1\n")
        (tmp_path / "link.py").symlink_to("real.py")
        replace_file(tmp_path / "link.py", b"x = 1\n", "y = 2\n")
        assert (tmp_path / "link.py").is_symlink()
        assert (tmp_path / "real.py").read_bytes() == b"y = 2\n"

    @pytest.mark.parametrize("meanwhile", [b"x = 3\n", None])
    def test_one_that_changed_meanwhile_stays(self, meanwhile: bytes | None, tmp_path: Path) -> None:
        path = tmp_path / "a.py"
        if meanwhile is not None:
            path.write_bytes(meanwhile)
        with pytest.raises(Changed, match="has changed since it was read"):
            replace_file(path, b"x = 1\n", "y = 2\n")
        assert (path.read_bytes() if path.exists() else None) == meanwhile

    def test_where_one_may_not_write_is_known_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "a.py"
        path.write_bytes(b"x = 1\n")
        check_file(path)
        assert [one.name for one in tmp_path.iterdir()] == ["a.py"]
        monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests may write everywhere
        with pytest.raises(CannotSave, match="you may not write there"):
            check_file(path)
