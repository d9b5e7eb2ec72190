import json

import pytest

from benchmarks.picking.records import Records
from engine.contract import BasslineError
from tests.benchmarks.picking.records import pair, record

SETTINGS = {"model": "default", "n": [1, 8]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "picking.jsonl"


def test_what_was_measured_is_there_again(path):
    first = record("HumanEval/1", 3, 12, *pair(2.0, None), peer=1)
    Records(path, SETTINGS, resume=False).add(first)
    again = Records(path, SETTINGS, resume=True)
    assert again.done == {"HumanEval/1": first}
    assert again.missing(["HumanEval/1", "HumanEval/2"]) == ["HumanEval/2"]


def test_a_record_is_on_the_disk_before_the_next_one_begins(path):
    records = Records(path, SETTINGS, resume=False)
    for count in (1, 2):
        records.add(record(f"HumanEval/{count}", 3, 12))
        assert len(path.read_text().splitlines()) == 1 + count


def test_a_kill_in_the_middle_of_a_line_costs_that_record_only(path):
    records = Records(path, SETTINGS, resume=False)
    for name in "ab":
        records.add(record(name, 3, 12, *pair(2.0, 3.0)))
    path.write_text(path.read_text()[:-20])
    again = Records(path, SETTINGS, resume=True)
    assert list(again.done) == ["a"]
    again.add(record("b", 4, 12))
    assert list(Records(path, SETTINGS, resume=True).done) == ["a", "b"]


def test_a_kill_before_the_first_whole_line_begins_anew(path):
    path.write_text('{"model": "def')
    assert Records(path, SETTINGS, resume=False).done == {}
    assert json.loads(path.read_text()) == SETTINGS


def test_earlier_records_are_never_written_over(path):
    Records(path, SETTINGS, resume=False).add(record("a", 3, 12))
    before = path.read_text()
    with pytest.raises(BasslineError, match="add --resume"):
        Records(path, SETTINGS, resume=False)
    with pytest.raises(BasslineError, match="measured with other n"):
        Records(path, SETTINGS | {"n": [4]}, resume=True)
    assert path.read_text() == before


def test_what_was_measured_on_a_busy_machine_is_measured_again(path):
    records = Records(path, SETTINGS, resume=False)
    records.add(record("a", 3, 12, void=True))
    assert records.missing(["a"]) == ["a"]
    records.add(record("a", 5, 12))
    assert records.missing(["a"]) == []
    assert Records(path, SETTINGS, resume=True).done["a"].rate["ours"].count(True) == 5


def test_going_on_with_nothing_is_beginning(path):
    assert Records(path, SETTINGS, resume=True).done == {}
