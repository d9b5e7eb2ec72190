"""What a name means, and what is refused at once: before the network, and before a loaded model makes room."""

import json

import pytest

from engine.backends import cuda
from engine.backends.device import Gpu
from engine.models import found, names
from engine.models.errors import DownloadFailed, ModelNotFound, PrecisionNotAvailable, WrongFile
from engine.models.names import choose_device, choose_precision, resolve
from engine.models.preparation import prepare


def prepare_quietly(name, **options):
    return prepare(str(name), progress=lambda _: None, cancelled=lambda: False, **options)


class TestNames:
    @pytest.mark.parametrize(("memory_gib", "name"), [(4, "qwen2.5-coder-0.5b"), (16, "qwen2.5-coder-1.5b")])
    def test_default_and_aliases(self, memory_gib, name, monkeypatch):
        monkeypatch.setattr(names, "memory_total", lambda: memory_gib << 30)
        monkeypatch.setattr(names, "default_kind", lambda: "cpu")
        monkeypatch.setattr(names, "cores", lambda: 4)
        assert resolve("default", device="cpu").name == name
        assert resolve("SmolLM2", device="cpu").entry.name == "smollm2-135m"

    def test_paths(self, tiny_gguf, tmp_path):
        path = tiny_gguf("a b.gguf")
        assert resolve(str(path)).name == "a b"
        assert resolve(str(tmp_path)).path == tmp_path

    def test_a_gguf_needs_no_suffix(self, tiny_gguf):
        blob = tiny_gguf().rename(tiny_gguf().with_name("sha256-0123"))
        assert resolve(str(blob)).path == blob

    @pytest.mark.parametrize(
        ("name", "repository", "revision"),
        [
            ("some/one", "some/one", "main"),
            ("some/one@v1.0", "some/one", "v1.0"),
            ("a/b@refs/pr/3", "a/b", "refs/pr/3"),
        ],
    )
    def test_on_the_hub(self, name, repository, revision):
        named = resolve(name)
        assert (named.repository, named.revision) == (repository, revision)

    def test_nobody_by_that_name(self):
        with pytest.raises(ModelNotFound, match=r"No model is called 'gpt-17'; choose one of qwen2\.5-coder-0\.5b, "):
            resolve("gpt-17")

    def test_a_file_that_is_no_model(self, tmp_path):
        (tmp_path / "notes.txt").write_text("hello")
        with pytest.raises(WrongFile, match=r"notes\.txt is not a model"):
            resolve(str(tmp_path / "notes.txt"))


class TestOffline:
    def test_a_hub_name(self, home):
        with pytest.raises(DownloadFailed, match=r"nobody/nothing@v2 is not on this machine yet; .* without --offline"):
            prepare_quietly("nobody/nothing@v2", offline=True)

    def test_a_hub_name_when_the_hub_is_away(self, home):
        with pytest.raises(DownloadFailed, match="hub cannot be reached"):
            prepare_quietly("nobody/nothing-at-all")

    def test_a_catalog_name(self, home):
        with pytest.raises(DownloadFailed, match="without --offline"):
            prepare_quietly("default", offline=True)


class TestDevices:
    def test_no_cuda_in_this_torch(self, monkeypatch):
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: False)
        with pytest.raises(PrecisionNotAvailable, match=r"without CUDA; choose --device cpu"):
            resolve("default", device="cuda")

    def test_no_gpu(self, monkeypatch):
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: True)
        monkeypatch.setattr(cuda, "nvidia_gpus", tuple)
        monkeypatch.setattr(cuda, "_driver_loads", lambda: False)
        with pytest.raises(PrecisionNotAvailable, match=r"No NVIDIA GPU is found here"):
            resolve("default", device="cuda:0")

    def test_one_gpu_too_few(self, monkeypatch):
        monkeypatch.setattr(cuda.Cuda, "why_not", lambda _: "")
        monkeypatch.setattr(cuda, "nvidia_gpus", lambda: (Gpu("test", 8 << 30, 8 << 30, "1", "cuda"),))
        assert choose_device("cuda:0") == "cuda:0"
        with pytest.raises(PrecisionNotAvailable, match=r"no GPU number 1 here; the last is cuda:0"):
            choose_device("cuda:1")

    @pytest.mark.parametrize("name", ["tpu", "mps", "cuda:x", ""])
    def test_unknown(self, name):
        with pytest.raises(PrecisionNotAvailable, match="is not known; choose auto, cpu or cuda"):
            choose_device(name)

    def test_nothing_is_converted_for_a_gpu_that_is_not_there(self, tiny_gguf, home, monkeypatch):
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: False)
        with pytest.raises(PrecisionNotAvailable):
            prepare_quietly(tiny_gguf(), device="cuda")
        assert not home.exists()


class TestPrecisions:
    @pytest.mark.parametrize(
        ("precision", "kind", "said"),
        [
            ("float16", "cpu", "float16 is not available on cpu; choose int8, float32, bfloat16"),
            ("int4", "cpu", "int4 is for GPUs; on a CPU int8 is faster"),
        ],
    )
    def test_what_cannot_be_is_refused(self, precision, kind, said):
        with pytest.raises(PrecisionNotAvailable, match=said):
            choose_precision(precision, kind)

    def test_automatic_choice(self, monkeypatch):
        assert choose_precision("auto", "cuda:1") == "bfloat16"
        assert choose_precision("int4", "cuda") == "int4"
        monkeypatch.setattr("platform.machine", lambda: "arm64")
        assert choose_precision("auto", "cpu") == "float32"
        with pytest.raises(PrecisionNotAvailable, match="x86"):
            choose_precision("int8", "cpu")
        monkeypatch.setattr("platform.machine", lambda: "x86_64")
        assert choose_precision("auto", "cpu") == "int8"


class TestOtherPrograms:
    """LM Studio's and Ollama's folders, laid out as those programs lay them out."""

    @pytest.fixture
    def person(self, tmp_path, monkeypatch):
        """A home folder of somebody who has used both."""
        monkeypatch.setenv("HOME", str(tmp_path / "person"))
        monkeypatch.setenv("USERPROFILE", str(tmp_path / "person"))
        monkeypatch.delenv("OLLAMA_MODELS", raising=False)
        return tmp_path / "person"

    @staticmethod
    def put_ollama(root, place, blob, kinds=("model", "template", "params")):
        digest = f"sha256:{blob.stem:0>64}"
        (root / "blobs").mkdir(parents=True, exist_ok=True)
        target = root / "blobs" / digest.replace(":", "-")
        target.write_bytes(blob.read_bytes())
        layers = [{"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": 1} for kind in kinds]
        manifest = root / "manifests" / place
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
        return target

    def test_ollama(self, person, tiny_gguf):
        root = person / ".ollama" / "models"
        blob = self.put_ollama(root, "registry.ollama.ai/library/qwen2.5-coder/0.5b", tiny_gguf("a.gguf"))
        self.put_ollama(root, "registry.ollama.ai/somebody/tuned/latest", tiny_gguf("b.gguf"))
        self.put_ollama(root, "hf.co/owner/model/Q4_K_M", tiny_gguf("c.gguf"))
        self.put_ollama(root, "registry.ollama.ai/library/seer/1b", tiny_gguf("d.gguf"), ("model", "projector"))
        (root / "manifests" / "registry.ollama.ai" / "library" / "broken").write_text("{")
        assert [file.name for file in found.found_files()] == [
            "ollama/hf.co/owner/model:Q4_K_M",
            "ollama/qwen2.5-coder:0.5b",
            "ollama/somebody/tuned:latest",
        ]
        named = resolve("Ollama/Qwen2.5-Coder:0.5b")
        assert (named.path, named.name) == (blob, "ollama/qwen2.5-coder:0.5b")

    def test_ollama_elsewhere(self, person, tmp_path, tiny_gguf, monkeypatch):
        monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "modelle"))
        self.put_ollama(tmp_path / "modelle", "registry.ollama.ai/library/m/latest", tiny_gguf())
        assert [file.name for file in found.found_files()] == ["ollama/m:latest"]

    def test_a_blob_is_converted_and_loads(self, person, home, tiny_gguf):
        self.put_ollama(person / ".ollama" / "models", "registry.ollama.ai/library/m/latest", tiny_gguf())
        ready = prepare_quietly("ollama/m:latest", precision="float32", device="cpu", offline=True)
        assert ready.folder.name.startswith("ollama--m-latest-float32-")
        assert (ready.folder / "model.safetensors").is_file()

    @pytest.mark.parametrize("root", [".lmstudio", ".cache/lm-studio", "anywhere"])
    def test_lm_studio(self, person, tiny_gguf, root):
        folder = person / root / "models" / "publisher" / "tiny-GGUF"
        folder.mkdir(parents=True)
        if root == "anywhere":
            (person / ".lmstudio-home-pointer").write_text(f"{person / root}\n")
        path = tiny_gguf().rename(folder / "tiny-q8.gguf")
        (folder / "mmproj-tiny.gguf").write_bytes(b"GGUF")
        (folder / "big-00001-of-00002.gguf").write_bytes(b"GGUF")
        (one,) = found.found_files()
        assert (one.name, one.program) == ("lm-studio/publisher/tiny-GGUF/tiny-q8.gguf", "LM Studio")
        assert one.bytes == path.stat().st_size
        assert resolve(one.name).path.samefile(path)

    def test_none(self, person):
        assert found.found_files() == []
        with pytest.raises(ModelNotFound):
            resolve("ollama/qwen2.5-coder:0.5b")
