"""Which ids end a text, by the files beside the weights."""

import json

import pytest

from engine.models.ends import declared_ends, write_ends
from engine.models.errors import WrongFile


def say(folder, **files):
    for name, said in files.items():
        (folder / f"{name}.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"config": {"eos_token_id": 5}}, {5}),
        ({"config": {"eos_token_id": [5, 6, 7]}}, {5, 6, 7}),
        ({"config": {"text_config": {"eos_token_id": 9}}}, {9}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"eos_token_id": [8, 9]}}, {8, 9}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"temperature": 0.5}}, {5}),
        ({"config": {"eos_token_id": None}, "generation_config": {}}, set()),
        ({"config": {"eos_token_id": [-1, 3]}}, {3}),
        ({"config": {}}, set()),
    ],
)
def test_the_generation_config_comes_first_and_then_the_config(tmp_path, files, ends):
    assert declared_ends(say(tmp_path, **files)) == ends


@pytest.mark.parametrize("said", ["</s>", ["</s>"], 2.5, {"a": 1}, True])
def test_what_is_no_id_is_refused_with_the_files_name(tmp_path, said):
    with pytest.raises(WrongFile, match=r"generation_config\.json names .* as eos_token_id"):
        declared_ends(say(tmp_path, config={}, generation_config={"eos_token_id": said}))


def test_what_is_written_is_read(tmp_path):
    write_ends(say(tmp_path, config={"eos_token_id": 1}), {7, 3})
    assert declared_ends(tmp_path) == {3, 7}
