"""Whether the machine was quiet: what is busy, less what is ours."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.machine import Watch, asked


def test_the_load_of_others_is_what_is_busy_less_our_own(monkeypatch):
    clocks = iter([(10.0, 100.0, 7.0), (14.0, 107.0, 13.0)])  # wall, all cores, ours
    monkeypatch.setattr(Watch, "_clocks", staticmethod(lambda: next(clocks)))
    with Watch() as watch:
        pass
    assert watch.others == pytest.approx((7.0 - 6.0) / 4.0)


def test_ticks_that_are_counted_late_make_no_negative_load(monkeypatch):
    clocks = iter([(10.0, 100.0, 7.0), (11.0, 100.5, 7.6)])
    monkeypatch.setattr(Watch, "_clocks", staticmethod(lambda: next(clocks)))
    with Watch() as watch:
        pass
    assert watch.others == 0.0


def test_the_clocks_go_forward_and_hold_our_work():
    before = Watch._clocks()
    sum(range(3_000_000))
    after = Watch._clocks()
    assert all(late >= early for early, late in zip(before, after, strict=True))
    assert after[2] > before[2]


def test_a_record_names_files_and_no_folder_of_one_machine() -> None:
    options = Namespace(json=Path("/home/me/out.json"), model="/home/me/x.gguf", precision="auto", gguf=None, n=[1, 8])
    told = {"json": "out.json", "model": "x.gguf", "precision": "auto", "gguf": None, "n": [1, 8]}
    assert asked(options) == told


def test_the_records_that_are_kept_name_no_folder_of_one_machine() -> None:
    records = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*.json"))
    assert records
    for record in records:
        options = json.loads(record.read_text(encoding="utf-8"))["options"]
        assert not [value for value in options.values() if isinstance(value, str) and "/" in value]
