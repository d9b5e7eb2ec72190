"""Opens the engine for a model: the sampler, a server, or recorded answers."""

from pathlib import Path

from engine.contract import Engine, ModelChoice
from engine.scripted import ScriptedEngine, from_texts

SCRIPTED = "scripted"
_RECORDED = Path(__file__).resolve().parent.parent.parent / "resources" / "recorded"


def kind_of(choice: ModelChoice) -> str:
    """Choices of one kind are answered by the same engine, one after another."""
    if choice.server:
        return "server"
    return SCRIPTED if choice.model == SCRIPTED else "sampler"


def open_engine(choice: ModelChoice) -> Engine:
    """The engine for ``choice``; nothing is loaded yet.

    ``scripted`` plays recorded answers to one prompt (a Roman numeral to an integer), right and wrong ones, whatever
    it is asked: a way to try everything without a model. A choice with a server is for that server, every other one
    for the sampler.
    """
    if kind_of(choice) == "server":
        from engine.server.engine import ServerEngine

        return ServerEngine()
    if kind_of(choice) == SCRIPTED:
        return ScriptedEngine(from_texts(recorded_answers(), chunk=6, model=SCRIPTED))
    from engine.sampler.engine import SamplerEngine  # brings torch, so not before it is needed

    return SamplerEngine()


def recorded_answers() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(_RECORDED.glob("*.md"))]
