"""Words that are not used any more are found where they would matter, and only there."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "vocabulary.py"


@pytest.fixture(scope="module")
def vocabulary() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vocabulary", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "source",
    [
        "class Heeded: ...",
        "def show_lamps(): ...",
        "def sent(values): ...",
        "self._errand = Task(self)",
        "def f(said): ...",
        "for stretch in rows: ...",
        "class Flight: ...",
        "label(tr('Ends at'))",
        "parser.add_argument('--x', help='asks a person')",
        "add_parser('x', description=f'what {server} heeds')",
        "raise BadRequest(f'This server does not heed {name}.')",
        "say('Load it all the same.')",
        "label(tr('A soft pass'))",
    ],
)
def test_a_banned_word_is_found(vocabulary: ModuleType, source: str) -> None:
    assert [line for line, _ in vocabulary.findings(source)] == [1]


@pytest.mark.parametrize(
    "source",
    [
        '"""What a person said, anew and all the same."""',
        "x = 1  # said by a person",
        "print_object({'heeds': seen, 'lamps': report})",
        "sent = connection.sent",
        "in_flight = self._in_flight",
        "label(tr('{n} candidates'))",
    ],
)
def test_prose_data_and_other_names_are_left_alone(vocabulary: ModuleType, source: str) -> None:
    assert vocabulary.findings(source) == []


def test_the_code_has_none(vocabulary: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert vocabulary.main(ROOT) == 0, capsys.readouterr().out


def test_a_planted_one_fails_the_lint(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "main.py").write_text("x = 1\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "widget.py").write_text("x = 1\n\n\nclass LampsView: ...\n")
    lint = [sys.executable, str(tmp_path / ".ci" / "vocabulary.py")]
    ended = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stdout == "app/widget.py:4: the name LampsView: write isolation, or layers\n"
    (tmp_path / "app" / "widget.py").write_text("x = 1\n")
    assert subprocess.run(lint, timeout=60).returncode == 0
