"""Which layers stand between a candidate's code and this computer: a box is made and looked at."""

import queue

from engine.contract import BasslineError
from engine.doctor.finding import BAD, GOOD, WEAK, Finding
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, Isolation

WAIT_S = 30.0
_ADVICE = {
    "memory": "Start Bassline as an ordinary user of a systemd session, whose control groups limit a box as a whole.",
    "verdict": "Write tests as bare asserts or a pytest file that import the solution, so that they run outside it.",
}
_OTHERWISE = "Install bubblewrap, or run only code that you have read."


def protection() -> list[Finding]:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client = RunnerClient(answers.put)
    try:
        client.probe()
        while not isinstance(isolation := answers.get(timeout=WAIT_S), Isolation):
            pass
    except BasslineError as error:
        return [Finding("sandbox", BAD, str(error))]
    except queue.Empty:
        text = f"the test runner did not answer in {WAIT_S:.0f} s"
        return [Finding("sandbox", BAD, text, "Try `bassline test` on a small file, and report what it says.")]
    finally:
        client.close()
    return [_sandbox(isolation), *_layers(isolation)]


def _sandbox(isolation: Isolation) -> Finding:
    if isolation.sealed:
        return Finding("sandbox", GOOD, "a box was made, and kept what it must")
    note = f": {isolation.note}" if isolation.note else ""
    return Finding(
        "sandbox",
        WEAK,
        f"none{note}; Bassline asks before it runs anything",
        "Install bubblewrap (`apt-get install bubblewrap`), and let ordinary users make user namespaces.",
    )


def _layers(isolation: Isolation) -> list[Finding]:
    return [_layer(name, sentence, name in isolation.weak) for name, sentence in isolation.isolation.items()]


def _layer(name: str, sentence: str, is_weak: bool) -> Finding:
    return Finding(name, WEAK, sentence, _ADVICE.get(name, _OTHERWISE)) if is_weak else Finding(name, GOOD, sentence)
