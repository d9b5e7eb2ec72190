"""Texts, token counts, accepted drafts and verdicts are those that were recorded, byte for byte.

int8 promises it for every number of threads and every kind of vector instruction, as the recorded scripts do anyway.
"""

import json

import pytest

from tests.recorded_runs.cases import CASES
from tests.recorded_runs.playing import RECORD, play

RECORDED = json.loads(RECORD.read_text())
SCRIPTED = [case.name for case in CASES if case.scripted]
SAMPLED = [case.name for case in CASES if not case.scripted]


@pytest.fixture(scope="module")
def scripted_outcomes():
    return play([case for case in CASES if case.scripted])


@pytest.fixture(scope="module")
def sampled_outcomes(small_model_cache, tmp_path_factory):
    """Of one engine, all runs in their order: what a run leaves behind for the next one's drafts is part of it."""
    home = tmp_path_factory.mktemp("home")
    (home / "models").symlink_to(small_model_cache / "models", target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASSLINE_HOME", str(home))
        return play([case for case in CASES if not case.scripted])


def test_the_record_is_of_these_thirty_runs():
    assert list(RECORDED) == [case.name for case in CASES]
    assert len(RECORDED) == 30
    verdicts = {candidate["verdict"] for run in RECORDED.values() for candidate in run["candidates"].values()}
    assert {"pass, 2 of 2", "fail, 0 of 2"} <= verdicts


@pytest.mark.sandbox
@pytest.mark.parametrize("name", SCRIPTED)
def test_a_scripted_run_ends_as_recorded(name, scripted_outcomes):
    assert scripted_outcomes[name] == RECORDED[name]


@pytest.mark.sandbox
@pytest.mark.real_model
@pytest.mark.timeout(1200)  # the first of them waits for all; half a minute where nothing else runs
@pytest.mark.parametrize("name", SAMPLED)
def test_a_run_of_the_small_model_ends_as_recorded(name, sampled_outcomes):
    assert sampled_outcomes[name] == RECORDED[name]
