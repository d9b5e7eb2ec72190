"""The state of a run after every kind and order of events and reports."""

import itertools

import pytest

from engine.contract import (
    BadRequest,
    CandidateFinished,
    Event,
    Loading,
    Metrics,
    PromptProgress,
    Request,
    RunFinished,
    RunStarted,
    Sampling,
    StepDone,
    TextAdded,
)
from engine.runner.report import Report, TestResult
from engine.session.run import Run

PASS = Report("pass", "split", tests=(TestResult("1", "passed"), TestResult("2", "passed")))
FAIL = Report("fail", "split", tests=(TestResult("1", "passed"), TestResult("2", "failed", "assert 3 == 4")))
METRICS = Metrics(
    0.1, 0.5, 2.0, 50.0, 10.0, 20.0, 15.0, 0.7, 9, "cpu", "int8", "suffix", "fixed:4", "coupled", 0.25, 3.5, 1.6, 2, 40
)


def a_run(n: int = 3, tests: str = "assert f() == 1") -> Run:
    return Run("r", Request("Write f.", seed=7, candidates=n), tests)


def ended(number: int, text: str = "", state: str = "done", at_s: float = 1.0, logprob: float = -0.5) -> Event:
    text = text or f"```python\ndef f():\n    return {number}\n```"
    reason = {"done": "stop", "cut": "length", "stopped": "cancelled", "failed": "error"}[state]
    return CandidateFinished("r", number, state, reason, text, 9, 8, 6, logprob, at_s)


def feed(run: Run, *events: Event) -> Run:
    for event in events:
        run.apply(event)
    return run


def states(run: Run) -> list[str]:
    return [c.state for c in run.candidates.values()]


def test_a_candidate_with_the_code_of_another_shares_its_verdict_and_its_counts() -> None:
    code = "```python\ndef f():\n    return 1\n```"
    run = feed(a_run(2), ended(1, code))
    run.queue_test(1)
    run.record(1, PASS, 1.0)
    feed(run, ended(2, code))
    twin = run.candidates[2]
    assert (twin.report, twin.test_state, twin.tests_done, twin.tests_total) == (PASS, "passed", 2, 2)


class TestEvents:
    def test_from_waiting_to_finished(self) -> None:
        run = a_run(2)
        seen = [(run.state, states(run))]
        for event in (
            RunStarted("r", 5, (1, 2), 7),
            PromptProgress("r", 3, 5),
            TextAdded("r", 1, "```\nd", 2, 0.3),
            StepDone("r", 1, 2, 4, 2, 2, 0.4),
            TextAdded("r", 1, "ef", 3, 0.5),
            ended(2, at_s=0.6),
            ended(1, at_s=0.9),
            RunFinished("r", "finished", METRICS),
        ):
            run.apply(event)
            if seen[-1] != (run.state, states(run)):
                seen.append((run.state, states(run)))
        assert seen == [
            ("waiting", ["queued", "queued"]),
            ("reading prompt", ["queued", "queued"]),
            ("generating", ["running", "queued"]),
            ("generating", ["running", "done"]),
            ("generating", ["done", "done"]),
            ("finished", ["done", "done"]),
        ]
        assert (run.candidates[1].started_s, run.candidates[1].finished_s) == (0.3, 0.9)
        assert (run.prompt_done, run.prompt_tokens) == (3, 5)
        assert run.totals == StepDone("r", 1, 2, 4, 2, 2, 0.4)

    def test_text_and_code_grow_while_it_runs(self) -> None:
        run = feed(a_run(1), TextAdded("r", 1, "Hi\n```python\nx =", 5, 0.1), TextAdded("r", 1, " 1\n``", 7, 0.2))
        assert run.candidates[1].text == "Hi\n```python\nx = 1\n``"
        assert run.candidates[1].code == "x = 1\n"
        run.apply(ended(1, "Hi\n```python\nx = 1\n```"))
        assert run.candidates[1].code == "x = 1\n"

    def test_the_last_word_is_the_text(self) -> None:
        run = feed(a_run(1), TextAdded("r", 1, "abcSTO", 6, 0.1), ended(1, "abc"), TextAdded("r", 1, "late", 7, 0.2))
        assert run.candidates[1].text == "abc"

    def test_other_runs_and_loading_change_nothing(self) -> None:
        run = feed(
            a_run(1), Loading("weights", 1, 2), TextAdded("other", 1, "x", 1, 0.1), RunFinished("other", "failed")
        )
        assert (run.state, run.candidates[1].text) == ("waiting", "")

    def test_candidates_added_later_appear(self) -> None:
        run = feed(a_run(1), RunStarted("r", 5, (1,), 7), TextAdded("r", 2, "x", 1, 0.1), ended(3))
        assert list(run.candidates) == [1, 2, 3]
        assert states(run) == ["queued", "running", "done"]

    def test_stopping_holds_until_the_engine_says_so(self) -> None:
        run = feed(a_run(1), RunStarted("r", 5, (1,), 7))
        run.stop()
        feed(run, TextAdded("r", 1, "x", 1, 0.1), StepDone("r", 1, 1, 0, 0, 1, 0.1))
        assert run.state == "stopping"
        feed(run, ended(1, state="stopped"), RunFinished("r", "stopped", METRICS))
        assert (run.state, run.outcome) == ("stopped", "stopped")
        run.stop()
        assert run.state == "stopped"

    @pytest.mark.parametrize(
        ("outcome", "state", "candidate"),
        [
            ("finished", "finished", "stopped"),
            ("budget", "finished", "cut"),
            ("stopped", "stopped", "stopped"),
            ("refused", "failed", "failed"),
            ("failed", "failed", "failed"),
        ],
    )
    @pytest.mark.parametrize("stopping", [False, True])
    def test_every_outcome_leaves_no_candidate_behind(
        self, outcome: str, state: str, candidate: str, stopping: bool
    ) -> None:
        run = feed(a_run(2), ended(1))
        if stopping:
            run.stop()
        run.apply(RunFinished("r", outcome, reason="why", details="more"))
        assert (run.state, run.outcome, run.reason, run.details) == (state, outcome, "why", "more")
        assert states(run) == ["done", candidate]

    def test_the_first_run_finished_is_the_last_word(self) -> None:
        run = feed(a_run(1), RunFinished("r", "stopped"), RunFinished("r", "failed"), ended(1))
        assert (run.state, states(run)) == ("stopped", ["stopped"])


class TestTesting:
    def test_candidates_are_tested_as_they_end(self) -> None:
        run = feed(a_run(), RunStarted("r", 5, (1, 2, 3), 7), ended(2))
        assert run.next_to_test() == [2]
        run.queue_test(2)
        assert run.next_to_test() == []
        run.apply(ended(1, state="cut"))
        assert run.next_to_test() == [1]

    def test_labels_on_the_way(self) -> None:
        run = feed(a_run(1), ended(1))
        candidate = run.candidates[1]
        labels = [candidate.tests_label]
        run.queue_test(1)
        labels.append(candidate.tests_label)
        run.test_progress(1, 0, 2)
        labels.append(candidate.tests_label)
        run.test_progress(1, 1, 2)
        labels.append(candidate.tests_label)
        run.record(1, FAIL, 1.0)
        labels.append(candidate.tests_label)
        assert labels == ["not run", "queued", "running 0 of 2", "running 1 of 2", "failed 1 of 2"]
        assert candidate.why == "assert 3 == 4"

    @pytest.mark.parametrize(
        ("report", "label"),
        [
            (PASS, "passed 2 of 2"),
            (Report("pass-soft", "split"), "unconfirmed"),
            (Report("pass-soft", "split", tests=PASS.tests), "unconfirmed 2 of 2"),
            (Report("fail", "split", why="SyntaxError"), "failed"),
            (Report("fail", "split", tests=(TestResult("1", "timeout"),)), "timed out"),
            (Report("fail", "split", tests=(TestResult("1", "passed"), TestResult("2", "killed"))), "killed"),
            (Report("fail", "split", tests=(TestResult("1", "failed"), TestResult("2", "timeout"))), "failed 2 of 2"),
            (Report("tampered", "split"), "tampered"),
            (Report("needs-in-process", "split"), "needs consent"),
            (Report("infra", "split"), "error"),
        ],
    )
    def test_verdicts_in_words(self, report: Report, label: str) -> None:
        run = feed(a_run(1), ended(1))
        run.record(1, report, 1.0)
        assert run.candidates[1].tests_label == label
        assert run.candidates[1].passed == (report.verdict == "pass")

    def test_without_tests_there_is_nothing_to_run(self) -> None:
        assert feed(a_run(tests="  \n"), ended(1)).next_to_test() == []

    def test_failed_and_empty_candidates_are_not_tested(self) -> None:
        assert feed(a_run(), ended(1, state="failed"), ended(2, " \n")).next_to_test() == []

    def test_progress_after_the_verdict_is_ignored(self) -> None:
        run = feed(a_run(1), ended(1))
        run.queue_test(1)
        run.record(1, PASS, 1.0)
        run.test_progress(1, 1, 2)
        assert run.candidates[1].tests_label == "passed 2 of 2"

    @pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])))
    def test_reports_in_any_order_and_after_the_end(self, order: tuple[int, ...]) -> None:
        run = feed(a_run(), ended(1), ended(2), ended(3), RunFinished("r", "finished", METRICS))
        for number in run.next_to_test():
            run.queue_test(number)
        for at_s, number in enumerate(order):
            assert not run.tested
            run.record(number, FAIL if number == 1 else PASS, float(at_s))
        assert run.tested
        assert run.ranking() == [2, 3, 1]
        assert run.first_passing_s == min(order.index(2), order.index(3))

    def test_the_same_code_is_tested_once_and_shares_the_verdict(self) -> None:
        code = "```python\ndef f(): return 1\n```"
        run = feed(a_run(4), ended(1, code), ended(2, f"Here:\n{code}"))
        assert run.next_to_test() == [1]
        run.queue_test(1)
        assert [run.candidates[n].test_state for n in (1, 2)] == ["queued", "queued"]
        run.apply(ended(3, code))  # ends while the first is in the box
        run.record(1, PASS, 1.0)
        run.apply(ended(4, code))  # ends when the verdict is known
        assert run.next_to_test() == []
        assert [c.report for c in run.candidates.values()] == [PASS] * 4
        same = run.candidates[4].same_as
        assert same is not None
        assert (same.number, same.reason) == (1, "same code")

    def test_code_that_only_means_the_same_is_tested_itself(self) -> None:
        run = feed(a_run(2), ended(1, "```\nx = 1\n```"), ended(2, "```\nx  =  1\n```"))
        assert run.candidates[2].same_as is not None
        assert run.next_to_test() == [1, 2]

    def test_all_that_say_the_same_name_one_candidate(self) -> None:
        """The third is byte for byte the second, which only means the same as the first."""
        run = feed(a_run(3), ended(3, "```\nx = 1\n```"), ended(1, "```\nx  =  1\n```"), ended(2, "```\nx  =  1\n```"))
        assert run.candidates[2].same_as is not None
        assert run.candidates[2].same_as.number == 1
        assert [run.candidates[n].group for n in (1, 2, 3)] == [3, 3, 3]

    def test_the_twin_of_a_failed_candidate_is_tested(self) -> None:
        code = "```python\ndef f(): return 1\n```"
        assert feed(a_run(2), ended(1, code, state="failed"), ended(2, code)).next_to_test() == [2]

    def test_changed_tests_void_verdicts_and_reports_on_their_way(self) -> None:
        run = feed(a_run(2), ended(1), ended(2))
        names = [run.queue_test(1), run.queue_test(2)]
        assert [run.number_of(name) for name in names] == [1, 2]
        run.record(1, PASS, 1.0)
        run.change_tests("assert f() == 2")
        assert run.candidates[1].report is None
        assert run.first_passing_s is None
        assert [run.number_of(name) for name in names] == [None, None]
        assert run.next_to_test() == [1, 2]
        assert run.number_of(run.queue_test(2)) == 2
        assert run.number_of("other/1/2") is None

    def test_cancelled_tests_can_run_again(self) -> None:
        run = feed(a_run(2), ended(1), ended(2))
        run.queue_test(1)
        run.record(1, FAIL, 1.0)
        run.queue_test(2)
        run.forget_queued_tests()
        assert [c.test_state for c in run.candidates.values()] == ["failed", "not run"]
        assert run.next_to_test() == [2]


class TestBest:
    def test_passed_then_group_then_logprob(self) -> None:
        run = feed(a_run(4), *(ended(n, logprob=-n) for n in (1, 2)))
        assert run.best() == 1
        feed(run, ended(3, "```python\ndef f():\n    return 2 # two\n```", logprob=-9.0))
        assert run.best() == 2  # two wrote that
        run.apply(ended(4, logprob=-20.0))
        run.record(4, PASS, 1.0)
        assert run.best() == 4

    def test_nobody(self) -> None:
        assert feed(a_run(), ended(1, state="failed"), ended(2, "\n")).best() is None


class TestGoingOn:
    def test_more_join_those_there_are(self) -> None:
        run = feed(a_run(2), ended(1), ended(2), RunFinished("r", "finished", METRICS))
        request = run.more(3)
        assert (list(request.numbers), request.seed, request.prompt) == ([3, 4, 5], 7, "Write f.")
        run.reopen(request)
        assert (run.state, run.outcome, states(run)) == ("waiting", "", ["done"] * 2 + ["queued"] * 3)
        feed(run, RunStarted("r", 5, (3, 4, 5), 7), ended(3, "```python\ndef f():\n    return 1\n```"))
        assert run.candidates[3].same_as
        assert run.candidates[3].same_as.number == 1
        feed(run, ended(4), ended(5), RunFinished("r", "finished", METRICS))
        assert (run.state, list(run.request.numbers)) == ("finished", [1, 2, 3, 4, 5])
        assert list(run.more(1).numbers) == [6]

    def test_old_candidates_stay_when_the_engine_fails(self) -> None:
        run = feed(a_run(1), ended(1), RunFinished("r", "finished", METRICS))
        run.record(1, PASS, 1.0)
        text = run.candidates[1].text
        run.reopen(run.more(2))
        feed(run, TextAdded("r", 2, "half", 1, 0.1), RunFinished("r", "failed", None, "Out of memory.", kind="x"))
        assert (run.state, run.reason, states(run)) == ("failed", "Out of memory.", ["done", "failed", "failed"])
        assert (run.candidates[1].text, run.best(), run.candidates[1].passed) == (text, 1, True)
        assert run.candidates[2].text == "half"
        run.reopen(run.more(1))  # and once more
        feed(run, ended(4), RunFinished("r", "finished", METRICS))
        assert states(run) == ["done", "failed", "failed", "done"]

    def test_no_run_grows_beyond_what_one_may_ask_for(self) -> None:
        with pytest.raises(BadRequest, match="between 1 and 128"):
            a_run(2).more(129)


class TestLikeness:
    def test_failing_in_the_same_way(self) -> None:
        run = feed(a_run(4), *(ended(n) for n in (1, 2, 3, 4)))
        for number, report in ((1, FAIL), (2, PASS), (3, FAIL)):
            run.record(number, report, 1.0)
        assert run.candidates[3].likeness == "fails the same tests as 1"
        assert [c.likeness for c in run.candidates.values()] == ["", "", "fails the same tests as 1", ""]
        run.record(4, PASS, 1.0)
        assert run.candidates[4].likeness == ""  # to pass alike says nothing
        run.change_tests("assert f() == 2")
        assert run.candidates[3].likeness == ""

    def test_other_values_are_another_failure(self) -> None:
        run = feed(a_run(2), ended(1), ended(2))
        run.record(1, FAIL, 1.0)
        other = TestResult("2", "failed", "assert 5 == 4")
        run.record(2, Report("fail", "split", tests=(FAIL.tests[0], other)), 1.0)
        assert run.candidates[2].likeness == ""

    def test_the_same_code_comes_before_the_same_failure(self) -> None:
        run = feed(a_run(2), ended(1, "```\nx = 1\n```"), ended(2, "```\nx  =  1\n```"))
        run.record(1, FAIL, 1.0)
        run.record(2, FAIL, 1.0)
        assert run.candidates[2].likeness == "same AST as 1"

    @pytest.mark.parametrize(
        ("temperature", "answers", "sentence"),
        [
            (0.2, "aaab", "3 of 4 candidates are the same code at temperature 0.2; try 0.8 for more variety."),
            (0.0, "aa", "All 2 candidates are the same code, since temperature 0 always takes the likeliest token"),
            (0.2, "aabb", ""),
            (0.8, "aaaa", ""),
            (0.2, "a", ""),
        ],
    )
    def test_more_heat_is_offered(self, temperature: float, answers: str, sentence: str) -> None:
        sampling = Sampling(temperature=temperature)
        run = Run("r", Request("Write f.", 7, len(answers), sampling=sampling))
        for number, answer in enumerate(answers, 1):
            run.apply(ended(number, f"```\nx = '{answer}'\n```"))
        assert run.advice().startswith(sentence)
        assert bool(run.advice()) == bool(sentence)


class TestJson:
    def test_keys_and_values(self) -> None:
        run = feed(a_run(2), RunStarted("r", 5, (1, 2), 7), ended(1, "Hi\n```python\nx = 1\n```"))
        run.record(1, FAIL, 1.5)
        feed(run, ended(2), RunFinished("r", "finished", METRICS))
        run.record(2, PASS, 1.75)
        result = run.result()
        assert list(result) == ["candidates", "metrics"]
        assert result["candidates"][0] == {
            "id": 1,
            "seed": 7,
            "state": "done",
            "text": "Hi\n```python\nx = 1\n```",
            "code": "x = 1\n",
            "tokens": 9,
            "proposed": 8,
            "accepted": 6,
            "mean_logprob": -0.5,
            "stop_reason": "stop",
            "tests": {"verdict": "fail", "passed": 1, "failed": 1, "why": "assert 3 == 4"},
        }
        assert result["metrics"] == {
            "time_to_first_token_s": 0.1,
            "time_to_first_finished_s": 0.5,
            "time_to_first_passing_s": 1.75,
            "total_s": 2.0,
            "tokens_per_second": 50.0,
            "ms_per_token": {"first": 10.0, "last": 20.0, "mean": 15.0},
            "acceptance_rate": 0.7,
            "steps": 9,
            "device": "cpu",
            "precision": "int8",
            "drafter": "suffix",
            "policy": "fixed:4",
            "acceptance": "coupled",
            "plain_step_share": 0.25,
            "mean_draft_length": 3.5,
            "speedup": 1.6,
            "width": 2,
            "tokens_read": 40,
        }

    def test_what_is_not_known_is_null(self) -> None:
        result = a_run(1).result()
        assert result["candidates"][0]["tests"] is None
        assert result["metrics"]["ms_per_token"] == {"first": None, "last": None, "mean": None}
        assert {v for k, v in result["metrics"].items() if k != "ms_per_token"} == {None}


COMPLETION = Request("def add(a, b):\n", 1, 1, mode="completion")
GAP = Request("def add(a, b):\n    total = ", 1, 1, mode="fill-in-the-middle", suffix="\n    return total\n")


@pytest.mark.parametrize(
    ("request_", "text", "code"),
    [
        (COMPLETION, "    return a + b\n", "def add(a, b):\n    return a + b\n"),
        (GAP, "a + b", "def add(a, b):\n    total = a + b\n    return total\n"),
        (COMPLETION, '    """```py\n    >>> 1\n    ```"""\n', 'def add(a, b):\n    """```py\n    >>> 1\n    ```"""\n'),
        (COMPLETION, "Here:\n```python\ndef add(a, b):\n    return a + b\n```\n", "def add(a, b):\n    return a + b\n"),
        (COMPLETION, "", ""),
        (COMPLETION, "<think>\nAdd.\n</think>\n    return a + b\n", "def add(a, b):\n\n    return a + b\n"),
        (COMPLETION, "    return a + b\n```\n\nThis adds.\n", "def add(a, b):\n    return a + b\n"),
        (COMPLETION, "    return a + b\n\nThis adds, as I'd say.\n", "def add(a, b):\n    return a + b\n"),
        (Request("def add(a, b):", 1, 1), "return a", "return a"),  # in a chat, the prompt is no part of the code
    ],
)
def test_the_code_of_a_completion_begins_with_its_prompt(request_: Request, text: str, code: str) -> None:
    run = Run("r", request_, "assert True")
    run.apply(CandidateFinished("r", 1, "done", "stop", text, 3, 0, 0, -0.1, 1.0))
    assert run.candidates[1].code == code
    assert run.next_to_test() == ([1] if code else [])
