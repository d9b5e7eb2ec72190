"""What a pass costs is measured once per machine, kept, and can be interrupted."""

import json

import pytest

from engine.contract import LoadCancelled
from engine.sampler.cost_table import CONTEXT, FAR, SIZES, CostTable, measured_once
from engine.sampler.ragged_model import RaggedModel
from tests.engine.sampler.tiny import VOCABULARY, build

ZEROS = json.dumps({"near": dict.fromkeys(map(str, SIZES), 0.0), "far": {}})
OLD = json.dumps(dict.fromkeys(map(str, SIZES), 1.0))  # before context was measured


@pytest.fixture
def model():
    return RaggedModel(build(), VOCABULARY)


def test_measured_once_and_kept(model, tmp_path):
    passes = []
    first = measured_once(model, "a/b: c", "int8", 4096, tmp_path / "new", lambda: passes.append(1))
    assert len(passes) >= len(SIZES)
    assert 0 < first.seconds(1) <= first.seconds(64)
    assert model.prompt_length == 0

    def never():
        raise AssertionError("measured again")

    again = measured_once(model, "a/b: c", "int8", 4096, tmp_path / "new", never)
    assert again.as_dict() == first.as_dict()


@pytest.mark.parametrize("content", ["", "[]", '{"1": "x"}', "{}", ZEROS, OLD])
def test_a_damaged_file_is_measured_anew(model, tmp_path, content):
    first = measured_once(model, "m", "int8", 4096, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert measured_once(model, "m", "int8", 4096, tmp_path).as_dict().keys() == first.as_dict().keys()


def test_a_folder_that_cannot_be_written_costs_only_time(model, tmp_path):
    (tmp_path / "file").write_text("")
    assert measured_once(model, "m", "int8", 4096, tmp_path / "file" / "below").seconds(1) > 0


def test_loading_can_be_stopped_while_it_measures(model, tmp_path):
    def stop():
        raise LoadCancelled("Loading was stopped.")

    with pytest.raises(LoadCancelled):
        measured_once(model, "m", "int8", 4096, tmp_path, stop)
    assert list(tmp_path.iterdir()) == []
    assert model.prompt_length == 0


def test_far_is_left_out_where_the_model_cannot_read_so_much(model, tmp_path):
    table = measured_once(model, "m", "int8", 512, tmp_path)
    assert table.as_dict()["far"] == {}
    assert measured_once(model, "m", "int8", 512, tmp_path).as_dict() == table.as_dict()


def test_context_costs_more_the_more_tokens_look_at_it():
    table = CostTable({1: 1.0, 8: 2.0, 32: 4.0}, {1: 1.1, 8: 3.0, 32: 8.0})
    near = [table.seconds(size) for size in (1, 8, 32)]
    assert near == [1.0, 2.0, 4.0]
    table.context = FAR
    assert [table.seconds(size) for size in (1, 8, 32)] == pytest.approx([1.1, 3.0, 8.0])
    table.context = (CONTEXT + FAR) // 2
    assert table.seconds(8) == pytest.approx(2.5)
