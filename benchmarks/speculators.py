"""Train the network that guesses what a model says next from its hidden states, for ``resources/speculators``.

    python -m benchmarks.speculators [--model NAME] [--minutes 25] [--answers FOLDER] OUT.npz

The prompts are those of ``ngram_prompts.txt`` and some hundred that the model makes up itself; none of them is one that
a benchmark measures. Answers take half an hour or so on two cores and are kept in FOLDER as they come. The network
learns to tell the target's next distributions, one, two and three tokens ahead; how far a guess can be trusted is
measured by every tenth prompt, which is not learned from.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from benchmarks.hidden_states import RecordedStates, recorded  # noqa: E402
from benchmarks.target_models import MEASURED, loaded  # noqa: E402
from engine.models.loader import LoadedModel  # noqa: E402
from engine.sampler.drafters.speculator import (  # noqa: E402
    CLASSES,
    DEPTHS,
    Network,
    SpeculatorFile,
    output_rows,
)
from kernels.int8_linear import quantize_weight  # noqa: E402

PROMPTS = Path(__file__).with_name("ngram_prompts.txt")
JUDGES = 10  # every so manieth prompt judges
AHEAD = 3  # tokens that are learned
LATER = 0.8  # weight of each further token
BATCH, RATE, WARM_UP = 512, 1e-3, 100
PROBES = 64
SEED = 7


@dataclass(frozen=True)
class Examples:
    """Hidden states ``[N, size]`` with the tokens ``[N]`` drawn there, and the places from which enough follows."""

    hidden: Tensor
    tokens: Tensor
    places: Tensor

    @classmethod
    def of(cls, answers: list[RecordedStates], ahead: int) -> "Examples":
        places, start = [], 0
        for each in answers:
            ends = [*each.starts[1:].tolist(), len(each.tokens)]
            for first, last in zip(each.starts.tolist(), ends, strict=True):
                places.append(torch.arange(start + first, max(start + first, start + last - ahead)))
            start += len(each.tokens)
        hidden = torch.from_numpy(np.concatenate([each.hidden for each in answers]))
        tokens = torch.from_numpy(np.concatenate([each.tokens for each in answers])).long()
        return cls(hidden, tokens, torch.cat(places))


@dataclass(frozen=True)
class Embeddings:
    """What states and tokens are to the target: its embeddings, and those rows of its output layer that are used."""

    vocabulary: Tensor  # [K]
    embeddings: Tensor  # [V, size], about 1 in size
    head: Tensor  # [K, size]: logits of a state that is about 1 in size
    state_size: float
    token_size: float

    @classmethod
    def of(cls, model: LoadedModel, examples: Examples, count: int) -> "Embeddings":
        vocabulary = torch.tensor([token for token, _ in Counter(examples.tokens.tolist()).most_common(count)])
        embeddings = model.module.get_input_embeddings().weight.detach().float()
        state_size = float(examples.hidden[::50].float().square().mean().sqrt())
        token_size = float(embeddings[vocabulary].square().mean().sqrt())
        rows = output_rows(model.module, vocabulary)
        return cls(vocabulary, embeddings / token_size, rows * state_size, state_size, token_size)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    torch.manual_seed(SEED)
    model = loaded(options.model)
    given = PROMPTS.read_text(encoding="utf-8").splitlines()
    answers = list(recorded(model, options.answers, given, options.made_up, options.samples))
    judges, learned = answers[::JUDGES], [each for number, each in enumerate(answers) if number % JUDGES]
    examples = Examples.of(learned, AHEAD)
    words = Embeddings.of(model, examples, options.vocabulary)
    print(f"{len(answers)} prompts, {len(examples.tokens):,} tokens to learn from", file=sys.stderr)
    network = fresh(examples.hidden.shape[1], options.width)
    train(network, examples, words, by_clock(options.minutes))
    right, shares = reliability(network, Examples.of(judges, DEPTHS), words)
    packed(model, network, words, right).save(options.out)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")
    print("right, of guesses behind right ones, by depth: " + " ".join(f"{share:.3f}" for share in shares))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speculators", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--answers", type=Path, default=Path("answers"), help="folder where answers are kept")
    parser.add_argument("--made-up", type=int, default=24, help="prompts the model makes up from each beginning")
    parser.add_argument("--samples", type=int, default=8, help="answers to each prompt")
    parser.add_argument("--minutes", type=float, default=25.0, help="of training")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=4096, help="tokens that may be guessed")
    return parser.parse_args(arguments)


def fresh(size: int, width: int) -> Network:
    """A network that changes next to nothing: it begins by taking the next state for a fainter copy of this one."""
    network = Network(size, width)
    nn.init.normal_(network.read.weight, std=0.02)
    nn.init.normal_(network.write.weight, std=0.005)
    with torch.no_grad():
        network.read.weight[:size] = 0.3 * torch.eye(size, 2 * size)
    return network


def by_clock(minutes: float) -> Callable[[int], float]:
    """How much of so many minutes, from now on, is over."""
    start = time.monotonic()
    return lambda step: (time.monotonic() - start) / (60 * minutes)


def train(network: Network, examples: Examples, words: Embeddings, done: Callable[[int], float]) -> None:
    """Cross-entropy against the target's own next distributions, by AdamW, at a rate that falls to zero.

    ``done``: the share of the training that is over, of the number of steps that were made.
    """
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.05)
    generator = torch.Generator().manual_seed(SEED)
    last_report, step, mean = 0.0, 0, 0.0
    while (share := done(step)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * share)) / 2
        places = examples.places[torch.randint(len(examples.places), (BATCH,), generator=generator)]
        value = loss(network, examples, words, places)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step, mean = step + 1, mean + (value.item() - mean) / min(step + 1, 50)
        if time.monotonic() - last_report > 30:
            last_report = time.monotonic()
            print(f"{share:4.0%}  step {step}  loss {mean:.3f}", file=sys.stderr, flush=True)


def loss(network: Network, examples: Examples, words: Embeddings, places: Tensor) -> Tensor:
    state = examples.hidden[places].float() / words.state_size
    total = torch.zeros(())
    for ahead in range(AHEAD):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            state = network(state, words.embeddings[examples.tokens[places + ahead]])
            logits = state @ words.head.T
            with torch.no_grad():
                truth = examples.hidden[places + ahead + 1].float() / words.state_size @ words.head.T
        entropy = -(truth.float().softmax(-1) * logits.float().log_softmax(-1)).sum(-1).mean()
        total = total + LATER**ahead * entropy
    return total


@torch.no_grad()
def reliability(network: Network, examples: Examples, words: Embeddings) -> tuple[np.ndarray, list[float]]:
    """Share of right guesses ``[DEPTHS, CLASSES]`` where those before were right; and by depth alone."""
    right, judged = torch.zeros(DEPTHS, CLASSES), torch.zeros(DEPTHS, CLASSES)
    for places in examples.places.split(4096):
        state = examples.hidden[places].float() / words.state_size
        for depth in range(DEPTHS):
            state = network(state, words.embeddings[examples.tokens[places + depth]])
            logits = state @ words.head.T
            share = (logits.softmax(-1).amax(-1) * CLASSES).long().clamp(max=CLASSES - 1)
            hit = words.vocabulary[logits.argmax(-1)] == examples.tokens[places + depth + 1]
            judged[depth] += torch.bincount(share, minlength=CLASSES)
            right[depth] += torch.bincount(share[hit], minlength=CLASSES)
            state, places = state[hit], places[hit]
    return ((right + 0.5) / (judged + 2)).numpy(), (right.sum(1) / judged.sum(1)).tolist()


def packed(model: LoadedModel, network: Network, words: Embeddings, right: np.ndarray) -> SpeculatorFile:
    read, write = (quantize_weight(layer.weight.detach()) for layer in (network.read, network.write))
    ids = words.vocabulary.sort().values[:: max(1, len(words.vocabulary) // PROBES)]
    return SpeculatorFile(
        read=read[0].numpy(),
        read_scale=read[1].numpy(),
        write=write[0].numpy(),
        write_scale=write[1].numpy(),
        gain=network.gain.detach().numpy(),
        vocabulary=words.vocabulary.int().numpy(),
        state_size=np.array(words.state_size, np.float32),
        token_size=np.array(words.token_size, np.float32),
        right=right.astype(np.float32),
        probe_ids=ids.numpy(),
        probe_texts=np.array(model.tokenizer.convert_ids_to_tokens(ids.tolist())),
        probe_rows=(words.embeddings[ids] * words.token_size).half().numpy(),
    )


if __name__ == "__main__":
    sys.exit(main())
