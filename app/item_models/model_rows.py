"""The models of this machine as rows of a table."""

from app.item_models.table import Cell
from app.ui.words import tr
from engine.models.library import ListedModel

HEADERS = ("Model", "Parameters", "On this computer", "Memory")


def row(model: ListedModel, loaded: bool) -> tuple[Cell, ...]:
    """A model in four cells; state and fit are words as well as colours."""
    title = model.title + (tr(" (default here)") if model.default else "")
    return (
        Cell(title, "passed" if model.here else "queued", "passed" if model.here else ""),
        Cell(f"{model.parameters / 1e9:.2f} B" if model.parameters else ""),
        Cell(_on_disk(model, loaded)),
        Cell(model.fit, tone="" if model.fits else "warning"),
    )


def about(model: ListedModel) -> str:
    """What else there is to know of it, in a line."""
    parts = [model.source if model.source != "Catalog" else "", model.licence]
    if model.context:
        parts.append(tr("context of {n:,} tokens").format(n=model.context))
    if model.converted_bytes and model.original_bytes:
        words = tr("{original} as published and {converted} as loaded")
        parts.append(words.format(original=size(model.original_bytes), converted=size(model.converted_bytes)))
    if model.draft:
        parts.append(tr("drafts well with {name}").format(name=model.draft))
    return ", ".join(part for part in parts if part)


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


def _on_disk(model: ListedModel, loaded: bool) -> str:
    if loaded:
        return tr("loaded now")
    if model.here:
        return tr("{size}, ready").format(size=size(model.original_bytes + model.converted_bytes))
    return tr("to download: {size}").format(size=size(model.download_bytes)) if model.download_bytes else ""
