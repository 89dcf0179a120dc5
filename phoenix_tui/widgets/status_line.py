"""The rows around a conversation: title above, status below, and the context meter in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from engine.machine.states import AwaitingApproval, AwaitingLlm, Idle, RetryWait, State, is_busy
from engine.run_options import Effort, PermissionMode
from phoenix_tui.keys.active_keys import background_hint, hint, short_key, state_hint, vim_hint
from phoenix_tui.text.labels import (
    ASKING,
    LIMITED,
    MODE_WORDS,
    RETRYING,
    SANDBOX_WORDS,
    STOPPED,
    THINKING,
    TURNING,
    UNREAD,
    AgentCounts,
    Glyph,
    HookInView,
    Label,
    StatusDetails,
    Tone,
    clock,
    hook_label,
    label,
    money,
    short_model,
    tokens,
)
from phoenix_tui.widgets.bases import Still, Ticker
from tools.call_values import SandboxMode
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK, Clock

NOTICED: Final = 70
"""Per cent of the window at which the user is informed (SPEC DEC-12)."""
NEAR: Final = 75
"""Per cent from which the meter is a warning (SPEC BED-012)."""
FULL: Final = 90
CELLS: Final = 10


class ContextUse(Struct, frozen=True):
    """Tokens in the window, its size (0 unknown), and whether the count is an estimate."""

    tokens: int = 0
    window: int = 0
    estimated: bool = False

    @property
    def percent(self) -> int | None:
        """Fill level in per cent; None while the window is unknown."""
        return round(100 * self.tokens / self.window) if self.window else None

    @property
    def tone(self) -> Tone:
        percent = self.percent or 0
        if percent >= FULL:
            return Tone.BAD
        return Tone.NEEDS_YOU if percent >= NEAR else Tone.QUIET


def short_meter(use: ContextUse) -> str:
    """`ctx 42%`, or the tokens where the window is unknown; empty before the first message."""
    if not use.tokens:
        return ""
    about = "~" if use.estimated else ""
    return f"ctx {about}{tokens(use.tokens)}" if use.percent is None else f"ctx {about}{use.percent}%"


def wide_meter(use: ContextUse, plain: bool) -> str:
    """`ctx ▰▰▰▰▱▱▱▱▱▱ 42% 84k/200k`."""
    percent = use.percent
    if percent is None or not use.tokens:
        return short_meter(use)
    filled = min(round(percent * CELLS / 100), CELLS)
    full, empty = ("#", "-") if plain else ("▰", "▱")
    about = "~" if use.estimated else ""
    bar = full * filled + empty * (CELLS - filled)
    return f"ctx {bar} {about}{percent}% {tokens(use.tokens)}/{tokens(use.window)}"


def warn_crossing(before: ContextUse, after: ContextUse) -> str:
    """Sentence when the window has just become nearly full, else empty; re-armed when the level falls."""
    was, now = before.percent or 0, after.percent or 0
    for limit in (FULL, NOTICED):
        if was < limit <= now:
            return f"The context window is {now} % full. /context shows what fills it and frees space."
    return ""


def covers(row: str, part: str, cell: int) -> bool:
    ahead, found, _ = row.partition(part) if part else ("", "", "")
    start = Content(ahead).cell_length
    return bool(found) and start <= cell < start + Content(part).cell_length


TICK: Final = 0.25
"""Seconds between two faces of the spinner."""
REMARKS: Final = {"local": "for trying, not for work", "demo": "rules, no model"}
"""Remark next to the models of a provider while they are in use."""
NOT_KEPT: Final = "not saved"
"""Words shown while conversations are in memory only."""
GAP: Final = " · "
ROOM_FOR_MORE: Final = 4
"""Number of rows of `_lefts` that are tried together with the hint of another key: cost and model give way to it."""
LEAST_GAP: Final = 2
"""Cells before the action of Esc, which is no part of the state."""


class StatusValues(Struct, frozen=True):
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


class StatusLine(Still, Widget):
    """One row that never blanks; its timer runs only during a run and repaints only itself."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; background: $background; color: $foreground; padding: 0 1; }
    """
    status: reactive[StatusValues] = reactive(StatusValues, repaint=False)
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

    def watch_status(self, before: StatusValues, status: StatusValues) -> None:
        """Start the clock with a run and end it with the run; a changed pace alone is drawn with the next tick."""
        paced = replace(before, details=replace(before.details, rate=status.details.rate))
        if paced != status or not self._ticker.runs:
            self.refresh()
        self._ticker.run(is_busy(status.state))

    def _tick(self) -> None:
        self._turn += 1
        if self._format_state(self._label()) != self._drawn:
            if self.beside is not None:
                self.beside()
            self.refresh()

    @property
    def ticking(self) -> bool:
        return self._ticker.runs

    def render(self) -> Content:
        width = self.size.width
        esc = self._hint()
        now = self._label()
        self._drawn = self._format_state(now)
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
            return ""
        if status.details.planned and not status.esc_hint and not status.has_text:
            return hint(("route_start", "starts"), ("stop", "stops"))
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

    def _format_state(self, now: Label) -> str:
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
        jobs = (f"{status.jobs} in background" if status.jobs else "", Tone.WORK.value)
        summary = ("summarizing older messages" if status.summarizing else "", Tone.WORK.value)
        remark = (REMARKS.get(status.model.partition("/")[0], ""), Tone.QUIET.value)
        background_work = (self.background_work, Tone.WORK.value)
        choices = (
            (mode, sandbox, kept, profile, route, model, remark, jobs, summary, background_work),
            (mode, sandbox, kept, profile, route, model, jobs, summary, background_work),
            (mode, sandbox, kept, profile, route, jobs, summary, background_work),
            (mode, sandbox, kept, jobs, summary, background_work),
            (mode, sandbox, kept),
            (mode, sandbox),
            (mode,),
        )
        yield from (_join_parts(parts) for parts in choices)
        yield Content("")


def _join_parts(parts: tuple[tuple[str, str], ...]) -> Content:
    shown = [(text, style) for text, style in parts if text]
    return Content.assemble(*(piece for part in shown for piece in (part, (GAP, Tone.QUIET.value))))


WIDE: Final = 80
"""Columns from which the bar of the meter is shown."""
LIST_FROM: Final = 100
"""Columns of the screen from which the list stays in view."""
SHORTEST_TITLE: Final = 8
SHORTEST_FOLDER: Final = 8
"""Cells of a folder below which it is left out."""
LONGEST_BRANCH: Final = 24
SPELLED_FROM: Final = 72
"""Columns from which the key of the list names its target."""
SHORTEST_PARENT: Final = 8
"""Cells of its parent's title below which a sub-agent names none."""


class Heading(Struct, frozen=True):
    """Values of the row. `others_*` count conversations that are not the visible one."""

    title: str = ""
    folder: str = ""
    branch: str = ""
    """Checked-out branch."""
    parent: str = ""
    """Title of the conversation whose sub-agent it is; gives way to its own."""
    place: str = ""
    """Number of the sub-agent and their count; never cut before the title."""
    context: ContextUse = field(default_factory=ContextUse)
    cost_usd: float | None = 0.0
    others_asking: int = 0
    others_unread: int = 0
    glyph: Glyph | None = None
    """State of the conversation, when several are on the screen."""
    aside: bool = False
    """True when another one has the focus."""
    tabbed: bool = False
    """True when a row of tabs above shows state and title."""

    def at(self, folder: str) -> Heading:
        return replace(self, folder=folder, branch=self.branch if folder == self.folder else "")


class TitleRow(Still, Widget):
    """One row; a long title gives way to the folder, down to half of the room."""

    DEFAULT_CSS = """
    TitleRow { height: 1; width: 1fr; padding: 0 1; background: $background; }
    """
    heading: reactive[Heading] = reactive(Heading)
    """Set by the screen."""
    names_folder: reactive[bool] = reactive(True)
    """False while the panel of an empty conversation below names it."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain

    def render(self) -> Content:
        heading, width = self.heading if self.names_folder else self.heading.at(""), self.size.width
        right = self._right(width)
        title = Content.assemble(
            (f"{heading.glyph.mark(self._plain)} ", heading.glyph.tone.value) if heading.glyph else "",
            (clean_line(heading.title) or "New conversation", Tone.QUIET.value if heading.aside else "bold"),
        )
        gap = LEAST_GAP - right.plain.startswith(" ") if right.cell_length else 0
        room = max(width - right.cell_length - gap, SHORTEST_TITLE)
        place = _place(heading, room - (0 if heading.tabbed else title.cell_length))
        beside = room - place.cell_length
        folder = _where(heading, beside - (0 if heading.tabbed else min(title.cell_length, beside // 2)))
        left = Content.assemble(title, place, folder)
        if heading.tabbed:
            left = (place + folder if place else folder[2:])[1:].truncate(room, ellipsis=True)
        elif left.cell_length > room:
            folder = Content("") if heading.parent or folder.cell_length > beside - beside // 2 else folder
            short = title.truncate(max(beside - folder.cell_length, SHORTEST_TITLE), ellipsis=True)
            left = Content.assemble(short, place, folder).truncate(room, ellipsis=True)
        return Content.assemble(left, " " * max(width - left.cell_length - right.cell_length, 1), right)

    def _meter(self, width: int) -> str:
        """Context and cost: on the whole screen nowhere else."""
        heading = self.heading
        is_wide = width >= WIDE and self.screen.size.width >= LIST_FROM
        use = wide_meter(heading.context, self._plain) if is_wide else short_meter(heading.context)
        return hint(use, money(heading.cost_usd))

    async def on_click(self, event: events.Click) -> None:
        """Open the context sheet after a click on the meter."""
        row, place = self.render(), event.get_content_offset(self)
        if place is not None and covers(row.plain, self._meter(self.size.width), place.x):
            event.stop()
            await self.run_action("screen.command('context')")

    def _right(self, width: int) -> Content:
        heading = self.heading
        if heading.aside:
            return Content("")
        parts: list[tuple[str, str]] = []
        list_hidden = self.screen.size.width < LIST_FROM
        if heading.others_asking and list_hidden:
            parts.append((f"{ASKING.mark(self._plain)}{heading.others_asking} ", ASKING.tone.value))
        if heading.others_unread and list_hidden:
            parts.append((f"{UNREAD.mark(self._plain)}{heading.others_unread} ", UNREAD.tone.value))
        if (meter := self._meter(width)) and (width >= WIDE or not heading.parent):  # a sub-agent names its place there
            parts.append((f"{meter} " if list_hidden else meter, heading.context.tone.value))
        if list_hidden:
            opens = hint(("list", "list")) if width >= SPELLED_FROM and not heading.parent else short_key("list")
            parts.append((f" {opens}", Tone.QUIET.value))
        return Content.assemble(*parts)


def _where(heading: Heading, room: int) -> Content:
    """Folder and branch; of a folder too long for `room` its end, as long as some of it is left."""
    if not heading.folder:
        return Content("")
    branch = Content(clean_line(heading.branch)).truncate(LONGEST_BRANCH, ellipsis=True).plain
    behind = f" ({branch})" if branch else ""
    folder, before = clean_line(heading.folder), " · "
    most = room - cell_len(before + behind)
    if SHORTEST_FOLDER <= most < cell_len(folder):
        folder = f"…{set_cell_size(folder[::-1], most - 1)[::-1]}"
    return Content.styled(f"{before}{folder}{behind}", Tone.QUIET.value)


def _place(heading: Heading, room: int) -> Content:
    """Parent of the sub-agent, cut to `room` cells, and its number among them."""
    if not heading.parent:
        return Content("")
    which = f" {heading.place}" if heading.place else ""
    parent = Content(clean_line(heading.parent))
    left = room - Content(f" (sub-agent of ){which}").cell_length
    fits = left >= min(parent.cell_length, SHORTEST_PARENT)
    whose = f" of {parent.truncate(left, ellipsis=True).plain}" if fits else ""
    return Content.styled(f" (sub-agent{whose}){which}", Tone.QUIET.value)
