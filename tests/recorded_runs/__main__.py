"""Records the runs again: ``python -m tests.recorded_runs``. Only after a change that is meant to change texts."""

import json
import os
import tempfile
from pathlib import Path

from tests.conftest import SMALL_MODEL, model_cache  # first: it sets the environment, before anything imports torch


def main() -> None:
    from engine.models.preparation import prepare
    from tests.recorded_runs.cases import CASES
    from tests.recorded_runs.playing import RECORD, play

    os.environ["BASSLINE_HOME"] = str(model_cache())
    prepare(SMALL_MODEL, precision="int8", device="cpu", progress=lambda _: None, cancelled=lambda: False)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "models").symlink_to(model_cache() / "models", target_is_directory=True)
        os.environ["BASSLINE_HOME"] = home
        outcomes = play(CASES)
    RECORD.write_text(json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(outcomes)} runs recorded in {RECORD}")


if __name__ == "__main__":
    main()
