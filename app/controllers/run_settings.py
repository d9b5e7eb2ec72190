"""The settings of one run, as the controls in the window have them."""

from dataclasses import dataclass, field

from engine.contract import ModelChoice, Request, Sampling, Speculation
from engine.session.arms import BATCH, Budget

SERVER = ("http://", "https://")


@dataclass(frozen=True)
class RunSettings:
    """``model``: a name, a folder, a file, or a server's address, with ``#name`` for its model.

    ``seed`` None: a new one for every run; ``time_budget_s`` None: no limit. ``goal`` empty: the first right candidate
    soonest where tests can tell which one that is, else all of them. ``until_pass``: go on until a candidate passes.
    """

    model: str = ModelChoice.model
    draft: str = ModelChoice.draft
    precision: str = ModelChoice.precision
    candidates: int = Request.candidates
    sampling: Sampling = field(default_factory=Sampling)
    speculation: Speculation = field(default_factory=Speculation)
    time_budget_s: float | None = None
    seed: int | None = None
    goal: str = ""
    width: int = Request.width
    system: str = Request.system
    ignore_fit: bool = False
    until_pass: bool = False

    @property
    def budget(self) -> Budget | None:
        """What may be spent until one passes, ``candidates`` being the most; None for a run that asks once."""
        if not self.until_pass:
            return None
        return Budget(self.candidates, self.time_budget_s or Budget.seconds)

    @property
    def choice(self) -> ModelChoice:
        """Raises BadRequest when no model is named."""
        if not self.model.startswith(SERVER):
            return ModelChoice(self.model, self.draft, self.precision, ignore_fit=self.ignore_fit)
        address, _, name = self.model.partition("#")
        return ModelChoice(name or "default", server=address)

    @classmethod
    def of(cls, request: Request, choice: ModelChoice | None) -> "RunSettings":
        """What the controls said when this was asked for; the seed aside, so that the next run is a new one."""
        choice = choice or ModelChoice()
        return cls(
            f"{choice.server}#{choice.model}" if choice.server else choice.model,
            choice.draft,
            choice.precision,
            request.candidates,
            request.sampling,
            request.speculation,
            request.time_budget_s,
            width=request.width,
            system=request.system,
        )

    def request(self, prompt: str, new_seed: int, *, has_tests: bool) -> Request:
        """A run of ``prompt``, with ``new_seed`` where none was chosen. Raises BadRequest when a value cannot be."""
        return Request(
            prompt,
            new_seed if self.seed is None else self.seed,
            BATCH if self.until_pass else self.candidates,
            system=self.system,
            sampling=self.sampling,
            speculation=self.speculation,
            time_budget_s=None if self.until_pass else self.time_budget_s,
            goal=self.goal or ("first" if has_tests else "all"),
            width=self.width,
        )
