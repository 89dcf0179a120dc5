"""The last row: mode, model, context, cost, state, and the action of Esc."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from textual.content import Content
from textual.reactive import reactive

from engine.effort import Effort
from engine.machine.states import AwaitingApproval, AwaitingLlm, Idle, RetryWait, State, is_busy
from engine.permission_mode import PermissionMode
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.esc_hint import background_hint, state_hint, vim_hint
from phoenix_tui.text.hook_label import HookInView, hook_label
from phoenix_tui.text.labels import (
    LIMITED,
    MODE_WORDS,
    RETRYING,
    SANDBOX_WORDS,
    STOPPED,
    THINKING,
    TURNING,
    AgentCounts,
    Label,
    StatusDetails,
    Tone,
    clock,
    label,
    money,
    short_model,
)
from phoenix_tui.widgets.context_meter import ContextUse, short_meter
from phoenix_tui.widgets.meter_click import MeterRow
from phoenix_tui.widgets.still import Still, Ticker
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.sandbox_mode import SandboxMode

TICK: Final = 0.25
"""Seconds between two faces of the spinner."""
REMARKS: Final = {"local": "small model: check its work", "demo": "rules, no model"}
"""Remark next to the models of a provider while they are in use."""
NOT_KEPT: Final = "not saved"
"""Words shown while conversations are in memory only."""
GAP: Final = " · "
ROOM_FOR_MORE: Final = 4
"""Number of rows of `_lefts` that are tried together with the hint of another key: cost and model give way to it."""
LEAST_GAP: Final = 2
"""Cells before the action of Esc, which is no part of the state."""


class Status(Struct, frozen=True):
    """Data of the row; `since` is monotonic."""

    state: State = field(default_factory=lambda: Idle(0))
    since: float = 0.0
    mode: PermissionMode = PermissionMode.ASK
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    model: str = ""
    effort: Effort = Effort.DEFAULT
    """Effort of the model; shown beside it where it is not the default."""
    supervisor: bool = False
    """True when a supervisor decides who answers."""
    profile: str = ""
    """The kind of agent; empty for the general one."""
    context: ContextUse = field(default_factory=ContextUse)
    cost_usd: float | None = 0.0
    has_text: bool = False
    is_prose: bool = True
    """True when the text is no command."""
    esc_hint: str = ""
    """Action of Esc on the innermost open thing, if there is one."""
    vim_esc_hint: str = ""
    """Action of Esc on vim's mode, or on an unfinished command, before any other."""
    details: StatusDetails = field(default_factory=StatusDetails)
    """Details without `elapsed`: the row has its own clock."""
    summarizing: bool = False
    """Older messages are being summarized in the background."""
    hook: HookInView | None = None
    """The hook that runs."""
    jobs: int = 0
    """Background commands that run."""
    read_only: bool = False
    agent_counts: AgentCounts = field(default_factory=AgentCounts)
    results: int = 0
    """Ends of sub-agents that wait to be read."""


class StatusLine(Still, MeterRow):
    """One row that never blanks; its timer runs only during a run and repaints only itself."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; background: $background; color: $foreground; padding: 0 1; }
    """
    status: reactive[Status] = reactive(Status, repaint=False)
    """Set by the screen."""
    background_work: reactive[str] = reactive("")
    """Activity beside the conversation in view, such as an installation; set by the screen."""
    database_busy: reactive[float] = reactive(0.0)
    """Seconds for which a database that another program keeps busy has been waited for; set by the screen."""
    kept: reactive[bool] = reactive(True)
    """True when conversations outlast this session; set by the screen."""
    enforcement: reactive[str] = reactive("full")
    """`Enforcement` of a sandbox on this system; set by the screen."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self.clock: Clock = SYSTEM_CLOCK
        self._ticker = Ticker(self, TICK, self._tick)
        self._turn = 0
        self._drawn = ""
        """Last text of the state: a tick that changes nothing costs no paint."""
        self.beside: Callable[[], None] | None = None
        """Called right before a tick paints, so that pending changes are painted along with it."""

    def watch_status(self, before: Status, status: Status) -> None:
        """Start the clock with a run and end it with the run; a changed pace alone is drawn with the next tick."""
        paced = replace(before, details=replace(before.details, rate=status.details.rate))
        if paced != status or not self._ticker.runs:
            self.refresh()
        self._ticker.run(is_busy(status.state))

    def _tick(self) -> None:
        self._turn += 1
        if self._shown(self._label()) != self._drawn:
            if self.beside is not None:
                self.beside()
            self.refresh()

    @property
    def ticking(self) -> bool:
        """True while the clock runs."""
        return self._ticker.runs

    def render(self) -> Content:
        """The row for the width there is; cost, model, context go first, state and Esc never."""
        width = self.size.width
        esc = self._hint()
        now = self._label()
        self._drawn = self._shown(now)
        state = Content.styled(self._drawn, f"{now.glyph.tone.value}")
        lefts = list(self._lefts())
        longer = [(left, f"{lets_go}{GAP}{esc}") for left in lefts[:ROOM_FOR_MORE] if (lets_go := self._lets_go())]
        for left, hints in (*longer, *((left, esc) for left in lefts)):
            gap = width - left.cell_length - state.cell_length - len(hints)
            if gap >= LEAST_GAP:
                return Content.assemble(left, state, " " * gap, (hints, Tone.QUIET.value))
        state = state.truncate(max(width - len(esc) - 1, 1), ellipsis=True)
        return Content.assemble(state, " " * max(width - state.cell_length - len(esc), 1), (esc, Tone.QUIET.value))

    def _lets_go(self) -> str:
        status = self.status
        if status.read_only or status.esc_hint:
            return ""
        return background_hint(status.state, self.clock.monotonic() - status.since, has_text=status.has_text)

    def _hint(self) -> str:
        status = self.status
        if self.database_busy and not status.esc_hint:
            return "Esc cancels"
        if status.read_only and not status.esc_hint:
            return "/fork continues in a copy"
        if status.details.planned and not status.esc_hint and not status.has_text:
            return hint(("route_start", "starts"), ("route_alone stop", "alone"))
        if status.vim_esc_hint and not status.esc_hint:
            return vim_hint(status.state, status.vim_esc_hint, has_text=status.has_text, is_prose=status.is_prose)
        if status.summarizing and isinstance(status.state, Idle) and not (status.has_text or status.esc_hint):
            return hint(("stop", "stops summarizing"))
        return state_hint(
            status.state,
            has_text=status.has_text,
            is_prose=status.is_prose,
            esc_hint=status.esc_hint,
            agent_counts=status.agent_counts,
        )

    def meter(self) -> str:
        """The short form."""
        return short_meter(self.status.context)

    def _label(self) -> Label:
        status = self.status
        if self.database_busy:
            return Label(RETRYING, f"waiting for the database, {clock(self.database_busy)}")
        if status.read_only and isinstance(status.state, AwaitingApproval):
            return Label(STOPPED, "needs an answer in the other window")
        now = self.clock.monotonic()
        elapsed = max(now - status.since, 0.0)
        details = replace(
            status.details, elapsed=elapsed, now=now, agents=status.agent_counts.agents, results=status.results
        )
        return hook_label(status.hook, status.state, now) or label(status.state, details)

    def _shown(self, now: Label) -> str:
        sign = now.glyph.mark(self._plain)
        retrying = isinstance(self.status.state, AwaitingLlm) and isinstance(self.status.state.phase, RetryWait)
        if now.glyph is THINKING and not self._plain and not retrying:
            sign = TURNING[self._turn % len(TURNING)]
        return f"{sign} {now.text}"

    def _lefts(self) -> Iterator[Content]:
        """Possible texts before the state, longest first; nearly always the first has room."""
        status = self.status
        word, tone = MODE_WORDS[status.mode]
        mode = ("read-only" if status.read_only else word, tone.value)
        box, box_tone = SANDBOX_WORDS[status.sandbox]
        if status.sandbox is not SandboxMode.OFF:
            box, box_tone = LIMITED.get(self.enforcement, (box, box_tone))
        sandbox = (box, box_tone.value)
        kept = ("" if self.kept else NOT_KEPT, Tone.NEEDS_YOU.value)
        profile = (clean_line(status.profile), Tone.YOU.value)
        route = ("route" if status.supervisor else "", Tone.QUIET.value)
        effort = "" if status.effort is Effort.DEFAULT else f" ({status.effort.value})"
        model = (f"{short_model(status.model)}{effort}", Tone.QUIET.value)
        context = (short_meter(status.context), status.context.tone.value)
        cost = (money(status.cost_usd), Tone.QUIET.value)
        jobs = (f"{status.jobs} in background" if status.jobs else "", Tone.WORK.value)
        summary = ("summarizing older messages" if status.summarizing else "", Tone.WORK.value)
        remark = (REMARKS.get(status.model.partition("/")[0], ""), Tone.QUIET.value)
        background_work = (self.background_work, Tone.WORK.value)
        choices = (
            (mode, sandbox, kept, profile, route, model, remark, context, cost, jobs, summary, background_work),
            (mode, sandbox, kept, profile, route, model, context, cost, jobs, summary, background_work),
            (mode, sandbox, kept, profile, route, model, context, jobs, summary, background_work),
            (mode, sandbox, kept, profile, route, context, jobs, summary, background_work),
            (mode, sandbox, kept, context, jobs, summary, background_work),
            (mode, sandbox, kept, context),
            (mode, sandbox, kept),
            (mode, sandbox),
            (mode,),
        )
        yield from (_joined(parts) for parts in choices)
        yield Content("")


def _joined(parts: tuple[tuple[str, str], ...]) -> Content:
    shown = [(text, style) for text, style in parts if text]
    return Content.assemble(*(piece for part in shown for piece in (part, (GAP, Tone.QUIET.value))))
