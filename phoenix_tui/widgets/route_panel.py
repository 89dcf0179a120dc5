"""The card of a supervisor's decision: agents, tasks and reasons, while it can be overruled."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from engine.executor.requests import Receipt, Refused
from engine.machine.effects import Strategy
from engine.records import RunPriority
from engine.updates import AnswerAlone, RouteAgent, RouteCard, RouteVerdict, StartAgents
from phoenix_tui.keys.active_keys import key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.agent_text import strategy_words
from phoenix_tui.text.labels import AGENTS, Tone
from phoenix_tui.widgets.answer_gate import AnswerGate
from phoenix_tui.widgets.bases import Still, Ticker, first_visible, wrap_hanging
from tools.clean import clean, clean_line
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from phoenix_tui.widgets.notices import Notifier


MOST_AGENTS: Final = 5
"""Agents in sight at once; the arrows bring the others."""
ROWS_EACH: Final = 2
"""Rows of a task at the most; e shows all of it."""
LONGEST: Final = 1_000
"""Characters of a task or a reason that are looked at for its rows."""
KEYS: Final = (("route_start", "starts now"), ("route_alone", "main model alone"), ("route_edit", "edits"))
CHOOSE: Final = ("older", "selects")
DROP: Final = ("route_drop", "removes")
MARK: Final = "## "
"""Begins an agent in the text that is edited."""


class Shown(Struct, frozen=True):
    """Visible state of a card."""

    card: RouteCard
    agents: tuple[RouteAgent, ...]
    """Remaining agents of the decision."""
    countdown: str
    chosen: int = -1
    """The place that the keys mean; -1 while the card has none."""
    first: int = 0
    """About which place is looked at."""
    small: bool = False
    """One row for each, and fewer of them."""
    plain: bool = False


def countdown(card: RouteCard | None, now: float) -> str:
    if card is None:
        return ""
    return f"starts in {max(int(card.starts_at - now) + 1, 0)} s" if card.starts_at else "needs your decision"


def card_rows(shown: Shown, width: int) -> list[Content]:
    route, count = shown.card.route, len(shown.agents)
    strategy = Strategy.DELEGATE if count == 1 else route.strategy
    heading = Content.assemble(
        (f"{AGENTS.mark(shown.plain)} ", AGENTS.tone.value),
        (strategy_words(strategy, count), "bold"),
        (f" · {route.confidence:.0%} sure", Tone.QUIET.value),
    )
    right = Content.styled(shown.countdown, Tone.NEEDS_YOU.value)
    if heading.cell_length >= width - right.cell_length:
        heading = heading.truncate(max(width - right.cell_length - 1, 1), ellipsis=True)
    rows = [Content.assemble(heading, " " * max(width - heading.cell_length - right.cell_length, 0), right)]
    most = MOST_AGENTS - 2 if shown.small else MOST_AGENTS
    first = first_visible(shown.first, count, most)
    seen = shown.agents[first : first + most]
    rows += [row for place, agent in enumerate(seen, first) for row in _agent_row(shown, place, agent, width)]
    if more := count - len(seen):
        rows.append(Content.styled(f"  +{more} more", Tone.QUIET.value))
    if route.reasoning:
        reason = Content.styled(f"why: {clean_line(route.reasoning)[:LONGEST]}", Tone.QUIET.value)
        rows += _cut(wrap_hanging(reason, 0, width), _rows_each(shown), width)
    rows.append(_keys((*KEYS, CHOOSE if shown.chosen < 0 else DROP), width))
    return rows


def _rows_each(shown: Shown) -> int:
    return 1 if shown.small else ROWS_EACH


def _agent_row(shown: Shown, place: int, agent: RouteAgent, width: int) -> list[Content]:
    number = f"{place + 1:>{len(str(len(shown.agents)))}} "
    line = Content.assemble(
        (number, Tone.QUIET.value),
        (clean_line(agent.profile), Tone.YOU.value),
        (_name(agent).removeprefix(clean_line(agent.profile)), Tone.QUIET.value),
        f"  {clean_line(agent.task[:LONGEST])}",
    )
    rows = _cut(wrap_hanging(line, len(number), width), _rows_each(shown), width)
    return [Content.styled(row.plain, "reverse") for row in rows] if place == shown.chosen else rows


def as_text(agents: tuple[RouteAgent, ...]) -> str:
    return "\n\n".join(f"{MARK}{_name(agent)}\n{clean(agent.task)}" for agent in agents)


def _name(agent: RouteAgent) -> str:
    normal = agent.priority is RunPriority.NORMAL
    return clean_line(agent.profile) if normal else f"{clean_line(agent.profile)} ({agent.priority.value})"


def from_text(text: str) -> tuple[RouteAgent, ...]:
    """Agents that the edited text names; one without a task is left out."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(MARK.strip() + " "):
            found.append((line.removeprefix(MARK).strip(), []))
        elif found:
            found[-1][1].append(line)
    agents: list[RouteAgent] = []
    for name, lines in found:
        profile, _, word = name.removesuffix(")").partition(" (")
        priority = RunPriority(word) if word in set(RunPriority) else RunPriority.NORMAL
        agents.append(RouteAgent(profile.strip(), "\n".join(lines).strip(), priority))
    return tuple(agent for agent in agents if agent.profile and agent.task)


def _cut(rows: list[Content], most: int, width: int) -> list[Content]:
    """Cut to `most` rows; the last one shows that there is more."""
    if len(rows) <= most:
        return rows
    last = Content.assemble(rows[most - 1].rstrip(), " …")
    return [
        *rows[: most - 1],
        last if last.cell_length <= width else rows[most - 1].truncate(width - 2) + Content(" …"),
    ]


def _keys(words: tuple[tuple[str, str], ...], width: int) -> Content:
    row = Content("")
    for name, meaning in words:
        if not (letter := key(name)):
            continue
        more = Content.assemble(row, "   " if row.plain else "", (letter, "bold"), (f" {meaning}", Tone.QUIET.value))
        if more.cell_length > width:
            break
        row = more
    return row


TICK: Final = 0.25
"""Seconds between two looks at the countdown."""
SMALL: Final = 24
"""Rows of a screen below which a task has one."""
HEADING: Final = "Agents and tasks: `## PROFILE` starts an agent, its task follows. Saving starts them."
NO_AGENT: Final = "No agent is left; `## PROFILE` adds one."


class RoutePanel(Still, Widget):
    """Shown while a decision is open; letters on an empty line answer it, Up gives it the keys."""

    DEFAULT_CSS = """
    RoutePanel {
        height: auto; display: none; padding: 0 1; border-left: heavy $primary; background: $background;
        &:focus { border-left: heavy $accent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.ROUTE)
    HELP = "Proposed agents. y starts them, n answers with the main model alone, e edits the tasks, x removes one."
    can_focus = True

    class Changed(Message):
        """The user removed an agent from the decision; `left` remain."""

        def __init__(self, left: int) -> None:
            super().__init__()
            self.left = left

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self.clock: Clock = SYSTEM_CLOCK
        self._card: RouteCard | None = None
        self._agents: tuple[RouteAgent, ...] = ()
        """Remaining agents of the decision."""
        self._chosen = 0
        self.gate = AnswerGate()
        """Gate that delays answers."""
        self._conversation: Conversation | None = None
        self._toasts: Notifier | None = None
        self._ticker = Ticker(self, TICK, self._tick)
        self._drawn = ""
        self._edited_text = ""
        """Last edited text that could not be started."""

    def show(
        self, card: RouteCard | None, conversation: Conversation | None = None, toasts: Notifier | None = None
    ) -> None:
        known = self._card is not None and card is not None and self._card.id == card.id
        self._card, self._conversation, self._toasts = card, conversation, toasts
        if not known:
            self._agents = card.route.agents if card is not None else ()
            self._chosen, self._edited_text = 0, ""
            self.gate.begin()
        self.display = card is not None
        self._ticker.run(card is not None and card.starts_at > 0.0)
        self._drawn = ""
        self.refresh(layout=True)

    def _tick(self) -> None:
        if countdown(self._card, self.clock.monotonic()) != self._drawn:
            self.refresh()

    @on(events.Focus)
    @on(events.Blur)
    def name_other_keys(self) -> None:
        self.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.focus()

    @property
    def is_open(self) -> bool:
        return self._card is not None

    @property
    def left(self) -> int:
        return len(self._agents)

    # Actions.

    def press(self, key: str) -> None:
        match key:
            case "y":
                self.decide(alone=False)
            case "n":
                self.decide(alone=True)
            case "e":
                self.action_edit()
            case _:
                return

    def decide(self, *, alone: bool) -> bool:
        """Start the shown agents, or let the main model answer alone; False where no decision is open."""
        card = self._card
        if card is None:
            return False
        changed = self._agents if self._agents != card.route.agents else ()
        self._answer(AnswerAlone() if alone else StartAgents(changed))
        return True

    def accept(self) -> bool:
        """Enter on an empty line: start the shown agents, but not as it appears; False where no decision is open."""
        return self.is_open and (not self.gate.is_open or self.decide(alone=False))

    def action_route(self, key: str) -> None:
        """A key while the card has the focus, but not one that was typed as it appeared."""
        if self.gate.is_open:
            self.press(key)

    def action_row(self, by: int) -> None:
        """Another agent; below the last one back to the composer."""
        row = self._chosen + by
        if row >= len(self._agents):
            self.screen.focus_next()
        self._chosen = max(0, min(row, len(self._agents) - 1))
        self.refresh(layout=True)

    def action_drop(self) -> None:
        """Leave the chosen agent out; without any the main model answers alone."""
        if not self._hold():
            return
        self._agents = (*self._agents[: self._chosen], *self._agents[self._chosen + 1 :])
        self._chosen = max(0, min(self._chosen, len(self._agents) - 1))
        if self._agents:
            self.post_message(self.Changed(len(self._agents)))
        else:
            self._answer(AnswerAlone())
        self.refresh(layout=True)

    def action_edit(self) -> None:
        if not self._hold():
            return
        from phoenix_tui.modals.text_sheet import EditSheet  # noqa: PLC0415 - behind the first frame, seldom wanted

        sheet = EditSheet(HEADING, self._edited_text or as_text(self._agents))
        self.app.push_screen(sheet, self._apply_edit)

    def _apply_edit(self, text: str | None) -> None:
        if text is None:
            return
        self._edited_text, agents = text, from_text(text)
        if not agents and self._toasts is not None:
            self._toasts.tell(NO_AGENT, bad=True)
        if not agents or not self._answer(StartAgents(agents)):
            self.action_edit()  # the text is kept for correction

    def _hold(self) -> bool:
        card, conversation = self._card, self._conversation
        return card is not None and conversation is not None and self._is_accepted(conversation.routing.hold(card.id))

    def _answer(self, verdict: RouteVerdict) -> bool:
        if self._card is None or self._conversation is None:
            return False
        return self._is_accepted(self._conversation.routing.answer(self._card.id, verdict))

    def _is_accepted(self, receipt: Receipt) -> bool:
        if isinstance(receipt, Refused) and self._toasts is not None:
            self._toasts.tell(receipt.reason, bad=True)
        return not isinstance(receipt, Refused)

    # Drawing.

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(max(width, 1)))

    def render(self) -> Content:
        self._drawn = countdown(self._card, self.clock.monotonic())
        return Content("\n").join(self._rows(max(self.size.width, 1)))

    def _rows(self, width: int) -> list[Content]:
        if self._card is None:
            return []
        shown = Shown(
            self._card,
            self._agents,
            countdown(self._card, self.clock.monotonic()),
            chosen=self._chosen if self.has_focus else -1,
            first=self._chosen,
            small=self.screen.size.height < SMALL,
            plain=self._plain,
        )
        return card_rows(shown, width)
