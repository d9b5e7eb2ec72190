"""Weights as published to weights as loaded, once: kept in a folder of their own. No torch.

The work is done by a child process (``conversion_process.py``), because dequantising is one long blocking call, takes
memory that should go back to the system, and must be stoppable.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import cattrs

from engine.models import child
from engine.models.errors import ConversionFailed

FORMAT = 1  # raise it when what is written changes; older folders are then converted again
WEIGHTS = "model.safetensors"
MANIFEST = "bassline.json"


@dataclass(frozen=True)
class Manifest:
    """What is in a converted folder. ``vocabulary`` is the number of real token ids."""

    format: int
    precision: str
    vocabulary: int


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder this module wrote; None for any other folder."""
    try:
        manifest = cattrs.structure(json.loads((folder / MANIFEST).read_text(encoding="utf-8")), Manifest)
    except (OSError, ValueError, cattrs.BaseValidationError):
        return None
    return manifest if manifest.format == FORMAT else None


def convert(source: Path, folder: Path, precision: str, progress: child.Progress, cancelled: child.Cancelled) -> None:
    """Convert a GGUF file or a folder of safetensors into ``folder``, which appears whole or not at all.

    Raises WrongFile, UnsupportedModel, DiskFull, OutOfMemory, ConversionFailed or LoadCancelled.
    """
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was killed
    try:
        unfinished.mkdir(parents=True)
        child.run_module(
            "engine.models.conversion_process",
            [str(source), str(unfinished), precision],
            failure=ConversionFailed,
            progress=progress,
            cancelled=cancelled,
            environment={"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"},
        )
        os.replace(unfinished, folder)
    except OSError as error:
        raise ConversionFailed(
            f"The converted model cannot be written to {folder.parent}: {error.strerror}."
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
