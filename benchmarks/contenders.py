"""Ways to get n answers to one prompt, by name, so that they can be interleaved."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks.engine_process import EngineProcess
from benchmarks.llama import LlamaCpp
from benchmarks.our_engine import OurEngine
from benchmarks.stock import Stock
from benchmarks.target_models import encoder, gguf_of
from benchmarks.timing import Timing
from engine.contract import ModelChoice, Request, Speculation

OURS = {
    "no draft": Speculation("none", "fixed:0"),
    "goodput": Speculation("auto", "goodput"),
    "suffix": Speculation("suffix", "goodput"),
    "draft model": Speculation("draft-model", "goodput"),
    "hybrid": Speculation("hybrid", "goodput"),
    "bass": Speculation("auto", "bass"),
    "fixed 4": Speculation("auto", "fixed:4"),
    "goodput, rejection": Speculation("auto", "goodput", "rejection"),
    "suffix, rejection": Speculation("suffix", "goodput", "rejection"),
    "draft model, rejection": Speculation("draft-model", "goodput", "rejection"),
    "hybrid, rejection": Speculation("hybrid", "goodput", "rejection"),
}
STOCK = {"stock float32": "float32", "stock int8": "int8"}
ASSISTED = "assisted"
LLAMA = "llama.cpp"
NAMES = (*OURS, *STOCK, ASSISTED, LLAMA)
# What a contender cannot do: for how many candidates it stands, and why for no more.
LIMITED = {ASSISTED: (1, "transformers' assisted generation decodes one candidate at a time")}

Engine = EngineProcess | LlamaCpp


@dataclass(frozen=True)
class Contender:
    """Our contenders share one engine: they differ only in how they speculate."""

    name: str
    engine: Engine
    speculation: Speculation = field(default_factory=Speculation)

    def run(self, request: Request) -> Timing:
        return self.engine.answer(replace(request, speculation=self.speculation))


@dataclass(frozen=True)
class Setting:
    """What the contenders are opened with. ``most``: candidates; ``gguf``: None for the file the model is made of."""

    model: str
    draft: str
    precision: str
    most: int
    max_tokens: int
    peer_python: Path
    gguf: Path | None = None


def can(name: str, n: int) -> bool:
    return name not in LIMITED or n <= LIMITED[name][0]


@contextmanager
def opened(names: Sequence[str], setting: Setting) -> Iterator[list[Contender]]:
    """Each engine in a process of its own, closed at the end. Raises BasslineError where one cannot be had."""
    engines: dict[str, Engine] = {}
    with ExitStack() as stack:
        for name in names:
            key = "ours" if name in OURS else name
            if key not in engines:
                engines[key] = _engine(key, setting)
                stack.callback(engines[key].close)
        yield [
            Contender(name, engines["ours"], OURS[name]) if name in OURS else Contender(name, engines[name])
            for name in names
        ]


def _engine(key: str, setting: Setting) -> Engine:
    if key == LLAMA:
        gguf = setting.gguf or gguf_of(setting.model)
        return LlamaCpp(encoder(setting.model), setting.peer_python, gguf, setting.most, setting.max_tokens)
    if key == ASSISTED:
        return EngineProcess(partial(Stock, setting.model, "float32", assisted=True, draft=setting.draft))
    if key in STOCK:
        return EngineProcess(partial(Stock, setting.model, STOCK[key]))
    return EngineProcess(partial(OurEngine, ModelChoice(setting.model, setting.draft, precision=setting.precision)))
