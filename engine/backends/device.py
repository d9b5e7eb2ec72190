"""What the program asks of a device, whatever kind it is. Importing this loads no torch."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Gpu:
    """One GPU as its driver reports it; memory in bytes. ``kind``: of the backend that runs models on it."""

    name: str
    memory_total: int
    memory_free: int
    driver: str
    kind: str


class Event(Protocol):
    """A place in the order of what was asked of a device, as in ``torch.Event``."""

    def record(self) -> None:
        """This is the place: behind everything that was asked so far."""

    def synchronize(self) -> None:
        """Wait until the device has come here."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from here to ``end``; both made with ``timing``."""


class Capture(Protocol):
    """How a pass becomes something to replay."""

    def __call__(self, work: "Callable[[], Tensor]") -> "tuple[Callable[[], None], Tensor]":
        """Run ``work`` as a warm-up and record it; the replay, and the tensor that every replay fills."""


class Device(ABC):
    """One device, or all of its kind where it has no ``number``.

    A backend is a subclass in a file of its own and a line in ``registry``. The first half is asked before torch is
    loaded (names, the memory plan, the doctor), so that file imports torch where it is used. What is not abstract
    holds for a device that computes in step with the host and knows plain PyTorch alone.
    """

    kind: ClassVar[str]  # as the command line and torch call it
    precisions: ClassVar[tuple[str, ...]]  # to compute in; the order in which they are named
    overhead: ClassVar[int]  # bytes that a process takes there before any model
    memory: ClassVar[str]  # whose memory it computes in, as an adjective
    is_host: ClassVar[bool] = False  # the processor this program runs on
    is_asynchronous: ClassVar[bool] = False  # what is asked of it goes on by itself; copies to it want pinned memory

    def __init__(self, number: int | None = None):
        self.number = number

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}:{self.number}"

    # What is known without torch.

    def why_not(self) -> str:
        """Why nothing can run on it here, as a sentence that says what to do; empty where it may work."""
        return ""

    def why_no_build(self) -> str:
        """That the installed torch cannot use this kind of device, as a sentence that says what to do; or empty."""
        return ""

    def why_unused(self) -> str:
        """What keeps torch from a device that is here and that it was built for: a sentence, or empty."""
        return ""

    def why_no_kernels(self) -> str:
        """Why our own kernels cannot run there, known without a try: a sentence, or empty."""
        return f"There are no kernels for {self.kind}, so attention runs in plain PyTorch."

    def found(self) -> tuple[Gpu, ...]:
        """All GPUs of this kind that a driver reports."""
        return ()

    @abstractmethod
    def memory_free(self) -> int | None:
        """Bytes that are free now, of all devices where it has no number; None where nobody says."""

    @abstractmethod
    def automatic_precision(self) -> str:
        """What models are computed in when nobody says."""

    def why_not_precision(self, precision: str) -> str:
        """Why models cannot be computed in ``precision`` there, as a sentence; empty if they can."""
        if precision in self.precisions:
            return ""
        return f"{precision} is not available on {self}; choose {', '.join(self.precisions)}."

    # What torch does there.

    def why_not_in_torch(self) -> str:
        """That torch, once loaded, does not find it, as a sentence that says what to do; or empty."""
        return ""

    def place(self) -> str:
        """What this very device is called: times that are measured hold for it."""
        return self.kind

    def exceeds_first(self, size: int) -> bool:
        """Whether ``size`` bytes of weights are too much for the first of several devices, and so go to all."""
        return False

    def release_cached_memory(self) -> None:  # noqa: B027 - most have nothing to do
        """Give the driver back what torch's allocator keeps for later."""

    @abstractmethod
    def event(self, *, timing: bool = False) -> Event:
        """A new one; it is nowhere before it is recorded."""

    def synchronize(self) -> None:  # noqa: B027
        """Wait for everything that was asked of it."""

    def why_plain(self) -> str:
        """Why only plain PyTorch comes into question, known without a try: a sentence, or empty."""
        return self.why_no_kernels()

    @abstractmethod
    def attention(self) -> "Callable[..., Tensor]":
        """Its kernel of ``kernels.attention``, ready on this thread; raises where it cannot even be imported."""

    def capture(self) -> Capture | None:
        """What makes graphs of passes; None where passes run one operation at a time."""
        return None

    def is_alive(self) -> bool:
        """Whether it still computes: a kernel that reads where nothing is ends all work of this process there."""
        return True
