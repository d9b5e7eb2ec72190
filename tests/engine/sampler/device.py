"""A GPU played on a CPU: the torch twin in the kernel's place, graphs replayed by running again, and faults."""

from dataclasses import dataclass, field

from engine.backends.cpu import Cpu
from engine.backends.cuda_graphs import WARM_UPS
from kernels.attention.torch import packed_attention


class Rerun:
    """Stands in for CUDA: the work itself is the replay, and its output lands in the same tensor every time."""

    def __init__(self):
        self.sizes, self.replays = [], 0

    def __call__(self, work):
        out = work()
        self.sizes.append(len(out))

        def replay():
            self.replays += 1
            out.copy_(work())

        return replay, out


class Warm(Rerun):
    """Runs the work as often as CUDA's capture does before it records it."""

    def __call__(self, work):
        for _ in range(WARM_UPS):
            work()
        return super().__call__(work)


class Refuse:
    def __call__(self, work):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")


@dataclass
class FakeDevice(Cpu):
    """A GPU that computes on the processor.

    ``faults``: raised one after the other by what is named (``import``, ``launch``, ``capture``), the last of them for
    ever; None: this time it works. ``wrong``: what the kernel's output is multiplied with.
    """

    is_host = False

    faults: dict[str, list[BaseException | None]] = field(default_factory=dict)
    wrong: float = 1.0
    alive: bool = True
    plain: str = ""
    captures: list[Rerun] = field(default_factory=list)
    launches: int = 0

    def __post_init__(self):
        super().__init__()

    def why_plain(self):
        return self.plain

    def attention(self):
        self._fail("import")

        def launch(*arguments, **options):
            self.launches += 1
            self._fail("launch")
            return packed_attention(*arguments, **options) * self.wrong

        return launch

    def capture(self):
        graphs = Rerun()
        self.captures.append(graphs)

        def capture(work):
            self._fail("capture")
            return graphs(work)

        return capture

    def is_alive(self):
        return self.alive

    def _fail(self, name):
        waiting = self.faults.get(name, [])
        error = (waiting.pop(0) if len(waiting) > 1 else waiting[0]) if waiting else None
        if error is not None:
            raise error
