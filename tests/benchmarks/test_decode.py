"""The decode benchmark: its tables from recorded turns, its order of turns, and once with the small model."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from benchmarks import decode
from benchmarks.contenders import can
from benchmarks.timing import Timing
from engine.contract import BasslineError
from tests.benchmarks.recorded import decode_result


def _tables(result):
    """For each temperature: its heading, and all rows by (n, contender)."""
    found, rows = {}, {}
    for line in "\n".join(decode.tables(result)).splitlines():
        if line.startswith("Temperature"):
            rows = {}
            found[float(line.split(";")[0].split()[1])] = (line, rows)
        elif line.startswith("| ") and line.split()[1].isdigit():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows.setdefault((int(cells[0]), cells[1]), []).append(cells[2:])
    return found


def test_a_row_holds_medians_with_their_spread():
    _, rows = _tables(decode_result())[0.8]
    speed, drafts = rows[4, "goodput"]
    assert speed == ["0.25", "31.5", "33.5", "32.5", "130.0 (100.0 to 160.0)", "1.00x (1.00 to 1.00)", "1,536"]
    assert drafts == ["50%", "2.00", "25%"]


def test_the_ratio_is_of_each_turn_with_itself():
    _, rows = _tables(decode_result())[0.8]
    assert rows[4, "no draft"][0][5] == "1.62x (1.25 to 2.00)"
    assert rows[1, "llama.cpp"][0][5] == "2.03x (1.56 to 2.50)"
    assert rows[1, "assisted"][0][5] == "3.25x (2.50 to 4.00)"


def test_only_those_who_guess_are_in_the_table_of_drafts():
    _, rows = _tables(decode_result())[0.2]
    assert {name for (_, name), tables in rows.items() if len(tables) == 2} == {"goodput"}


def test_who_cannot_do_it_is_left_out_and_that_is_said():
    text = "\n".join(decode.tables(decode_result()))
    _, rows = _tables(decode_result())[0.2]
    assert (1, "assisted") in rows
    assert (4, "assisted") not in rows
    assert (
        "assisted is left out above n = 1: transformers' assisted generation decodes one candidate at a time." in text
    )
    assert not can("assisted", 2)
    assert can("llama.cpp", 16)


def test_a_temperature_with_other_load_is_void_and_no_other():
    found = _tables(decode_result())
    assert found[0.2][0] == "Temperature 0.2; load of others at most 0.50 cores; VOID: the machine was not idle"
    assert found[0.8][0] == "Temperature 0.8; load of others at most 0.01 cores"


def test_answers_of_one_token_leave_a_gap_and_no_ratio():
    result = decode_result()
    for turn in result["turns"]:
        turn["timings"]["llama.cpp"]["tokens_per_second"] = None
        turn["timings"]["llama.cpp"]["peak_mib"] = None
    _, rows = _tables(result)[0.8]
    assert rows[4, "llama.cpp"][0][4:] == ["-", "-", "-"]


@dataclass
class StandIn:
    """A contender that notes when it is asked what."""

    name: str
    log: list
    engine: object = None

    def run(self, request):
        self.log.append((self.name, request.candidates, request.sampling.temperature, request.seed))
        return Timing.of(0.1, [(1.1, 10)] * request.candidates)


def _opened(log):
    @contextmanager
    def opened(names, setting):
        log.append(setting.most)
        yield [StandIn(name, log) for name in names]

    return opened


def test_they_take_turns_and_every_second_one_is_the_other_way_round(monkeypatch, tmp_path, capsys):
    log, out = [], tmp_path / "decode.json"
    monkeypatch.setattr(decode, "opened", _opened(log))
    arguments = ["-n", "1", "2", "--prompts", "roman", "--temperature", "0.2", "--repeat", "2"]
    assert decode.main([*arguments, "--contenders", "assisted", "--json", str(out)]) == 0
    assert log.pop(0) == 2
    warm_up = [("no draft", 1), ("no draft", 2), ("goodput", 1), ("goodput", 2), ("assisted", 1)]
    assert [(name, n) for name, n, *_ in log[:5]] == warm_up
    assert log[5:] == [
        ("no draft", 1, 0.2, 0),
        ("goodput", 1, 0.2, 0),
        ("assisted", 1, 0.2, 0),
        ("goodput", 2, 0.2, 0),
        ("no draft", 2, 0.2, 0),
        ("assisted", 1, 0.2, 1),
        ("goodput", 1, 0.2, 1),
        ("no draft", 1, 0.2, 1),
        ("no draft", 2, 0.2, 1),
        ("goodput", 2, 0.2, 1),
    ]
    result = json.loads(out.read_text())
    assert len(result["turns"]) == 4
    assert result["turns"][1]["timings"]["no draft"]["tokens_per_second"] == pytest.approx(20.0)
    said = capsys.readouterr()
    assert "| 20.0 (20.0 to 20.0) | 1.00x (1.00 to 1.00) |" in said.out
    assert "3 of 4 after 0 min, T = 0.2, n = 1, roman: tokens/s no draft 10.0, goodput 10.0" in said.err


def test_what_fails_is_one_sentence_and_what_was_measured_is_kept(monkeypatch, tmp_path, capsys):
    class Breaks(StandIn):
        def run(self, request):
            if request.candidates == 2 and request.sampling.max_tokens == 512:
                raise BasslineError("There is no draft model.")
            return replace(super().run(request), peak_mib=5.0)

    @contextmanager
    def opened(names, setting):
        yield [Breaks(name, []) for name in names]

    monkeypatch.setattr(decode, "opened", opened)
    out = tmp_path / "decode.json"
    arguments = ["-n", "1", "2", "--prompts", "roman", "--temperature", "0.2", "--json", str(out)]
    assert decode.main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "There is no draft model."
    assert len(json.loads(out.read_text())["turns"]) == 1


@pytest.mark.real_model
def test_the_small_model_goes_all_the_way(small_model, tmp_path, capsys):
    out = tmp_path / "decode.json"
    arguments = ["--model", small_model, "-n", "2", "--prompts", "roman", "--temperature", "0.8", "--max-tokens", "12"]
    assert decode.main([*arguments, "--contenders", "stock int8", "--json", str(out)]) == 0
    capsys.readouterr()
    (turn,) = json.loads(out.read_text())["turns"]
    assert list(turn["timings"]) == ["no draft", "goodput", "stock int8"]
    for timing in turn["timings"].values():
        assert 2 <= timing["tokens"] <= 24
        assert 0 < timing["first_token_s"] < timing["total_s"]
        assert timing["ms_mean"] > 0
    steps = turn["timings"]["no draft"]["steps"]
    assert max(steps["rows"]) == 2
    assert not any(steps["drafted"])
