"""Short ways to write down what was measured."""

from benchmarks.picking.records import OURS, PEER, Outcome, Record, Trial


def outcome(finished_s: float, verdict: str = "fail", mean_logprob: float | None = -0.5, tokens: int = 100) -> Outcome:
    return Outcome(finished_s, tokens, mean_logprob, verdict)


def trial(
    first_pass_s: float | None, ended_s: float = 10.0, side: str = OURS, n: int = 8, turn: int = 0, *outcomes: Outcome
) -> Trial:
    made = outcomes or (outcome(ended_s),) if first_pass_s is None else outcomes or (outcome(first_pass_s, "pass"),)
    return Trial(side, n, turn, first_pass_s, ended_s, list(made))


def record(task: str, passed: int, of: int, *trials: Trial, void: bool = False, peer: int | None = None) -> Record:
    """``passed`` of ``of`` untimed answers of ours, and ``peer`` of as many of the peer's."""
    rate = {OURS: [True] * passed + [False] * (of - passed)}
    if peer is not None:
        rate[PEER] = [True] * peer + [False] * (of - peer)
    return Record(task, rate, list(trials), 0.1, void, 60.0)


def pair(
    ours: float | None, peer: float | None, turn: int = 0, ended: tuple[float, float] = (10.0, 30.0)
) -> list[Trial]:
    return [trial(ours, ended[0], OURS, turn=turn), trial(peer, ended[1], PEER, turn=turn)]
