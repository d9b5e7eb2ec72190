"""A quick look at ``make seeded-bugs``: every bug can still be planted, and two of them are seen to be caught."""

from pathlib import Path

import pytest

from tests.seeded_bugs import AREAS, BUGS
from tests.seeded_bugs.planting import copy_tree, plant, run_tests


def test_areas_are_found_and_no_two_bugs_have_one_name() -> None:
    assert {"app", "models", "network", "runner", "sampler", "selection", "session", "split"} <= AREAS.keys()
    names = [*AREAS, *(bug.name for bug in BUGS)]
    assert sorted(set(names)) == sorted(names)


def test_every_bug_can_be_planted(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    for bug in BUGS:
        before = (tree / bug.file).read_text(encoding="utf-8")
        plant(bug, tree)
        compile((tree / bug.file).read_text(encoding="utf-8"), bug.file, "exec")
        (tree / bug.file).write_text(before, encoding="utf-8")


@pytest.mark.parametrize("name", ["mask", "purpose"])
def test_a_bug_in_a_kernel_is_caught_by_its_own_tests(tmp_path: Path, name: str) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == name)
    tree = copy_tree(tmp_path)
    plant(bug, tree)
    passed, failed = run_tests(tree, bug.tests[:1])
    assert passed > 0  # it is this that fails, not everything
    assert failed > 0
