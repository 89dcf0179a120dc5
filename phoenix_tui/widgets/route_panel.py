"""The card of a supervisor's decision: who would do what and why, while it can be overruled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from engine.executor.requests import Receipt, Refused
from engine.machine.effects import Strategy
from engine.records import RunPriority
from engine.routes import AnswerAlone, RouteAgent, RouteCard, RouteVerdict, StartAgents
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.labels import AGENTS, Tone
from phoenix_tui.route_words import strategy_words
from phoenix_tui.still import Still
from phoenix_tui.widgets.flowing import hanging
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from phoenix_tui.screens.parts import Teller
    from phoenix_tui.surface import ConversationSurface

TICK: Final = 0.25
"""Seconds between two looks at the countdown."""
GRACE: Final = 0.5
"""Seconds in which a new card takes no letter: it was meant for what stood there before (LOOK.md 7)."""
MOST_AGENTS: Final = 5
"""Agents in sight at once; the arrows bring the others."""
ROWS_EACH: Final = 2
"""Rows of a task at the most; e shows all of it."""
SMALL: Final = 24
"""Rows of a screen below which a task has one."""
LONGEST: Final = 1_000
"""Characters of a task or a reason that are looked at for its rows."""
KEYS: Final = ("y start now", "n main model alone", "e edit", "↑ choose")
CHOOSING: Final = ("y start now", "n main model alone", "e edit", "x drop")
MARK: Final = "## "
"""Begins an agent in the text that is edited."""
HEADING: Final = "Who does what: `## PROFILE` begins an agent, its task follows. Keeping it starts them."
NO_AGENT: Final = "No agent is left there: `## PROFILE` begins one. n answers with the main model alone."


class RoutePanel(Still, Widget):
    """Shown while a decision is open; letters on an empty line answer it, Up gives it the keys."""

    DEFAULT_CSS = """
    RoutePanel {
        height: auto; display: none; padding: 0 1; border-left: heavy $primary; background: $background;
        &:focus { border-left: heavy $accent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.ROUTE)
    HELP = "Who would do what. y starts them, n answers with the main model alone, e edits the tasks, x drops one."
    can_focus = True

    def __init__(self, *, plain: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._plain = plain
        self._clock = clock
        self._card: RouteCard | None = None
        self._agents: tuple[RouteAgent, ...] = ()
        """Those that are left of the decision's."""
        self._chosen = 0
        self.since = 0.0
        """When the card appeared here."""
        self._conversation: ConversationSurface | None = None
        self._tell: Teller | None = None
        self._timer: Timer | None = None
        self._drawn = ""

    def show(self, card: RouteCard | None, conversation: ConversationSurface, tell: Teller) -> None:
        """Show a decision of this conversation, or none."""
        known = self._card is not None and card is not None and self._card.id == card.id
        self._card, self._conversation, self._tell = card, conversation, tell
        if not known:
            self._agents = card.route.agents if card is not None else ()
            self._chosen, self.since = 0, self._clock()
        self.display = card is not None
        self._see_to_clock(card is not None and card.starts_at > 0.0)
        self._drawn = ""
        self.refresh(layout=True)

    def _see_to_clock(self, runs: bool) -> None:
        if runs and self._timer is None:
            self._timer = self.set_interval(TICK, self._tick)
        elif not runs and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        if self._countdown() != self._drawn:
            self.refresh()

    def on_focus(self) -> None:
        """Its keys are others now."""
        self.refresh(layout=True)

    def on_blur(self) -> None:
        """And others again."""
        self.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        """The card takes the keys."""
        event.stop()
        self.focus()

    @property
    def is_open(self) -> bool:
        """Whether there is something to decide."""
        return self._card is not None

    # What it does.

    def press(self, key: str) -> None:
        """A letter on an empty line."""
        match key:
            case "y":
                self.start()
            case "n":
                self._answer(AnswerAlone())
            case "e":
                self.action_edit()
            case _:
                return

    def start(self) -> bool:
        """Start what is shown; False where no decision is open."""
        card = self._card
        if card is None:
            return False
        self._answer(StartAgents(self._agents if self._agents != card.route.agents else ()))
        return True

    def overrule(self) -> bool:
        """Esc: the main model alone; False where no decision is open."""
        if self._card is None:
            return False
        self._answer(AnswerAlone())
        return True

    def action_route(self, key: str) -> None:
        """A key while the card has the focus, but not one that was typed as it appeared."""
        if self._clock() - self.since >= GRACE:
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
        if not self._agents:
            self._answer(AnswerAlone())
        self.refresh(layout=True)

    def action_edit(self) -> None:
        """Change profiles and tasks as text."""
        if not self._hold():
            return
        from phoenix_tui.screens.edit_sheet import EditSheet  # noqa: PLC0415 - behind the first frame, seldom wanted

        self.app.push_screen(EditSheet(HEADING, as_text(self._agents)), self._edited)

    def _edited(self, text: str | None) -> None:
        if text is None:
            return
        agents = from_text(text)
        if agents:
            self._answer(StartAgents(agents))
        elif self._tell is not None:
            self._tell(NO_AGENT, bad=True)

    def _hold(self) -> bool:
        card, conversation = self._card, self._conversation
        return card is not None and conversation is not None and self._heard(conversation.routing.hold(card.id))

    def _answer(self, verdict: RouteVerdict) -> None:
        if self._card is not None and self._conversation is not None:
            self._heard(self._conversation.routing.answer(self._card.id, verdict))

    def _heard(self, receipt: Receipt) -> bool:
        if isinstance(receipt, Refused) and self._tell is not None:
            self._tell(receipt.reason, bad=True)
        return not isinstance(receipt, Refused)

    # What it shows.

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are at `width`."""
        return len(self._rows(max(width, 1)))

    def render(self) -> Content:
        """The rows."""
        self._drawn = self._countdown()
        return Content("\n").join(self._rows(max(self.size.width, 1)))

    def _rows(self, width: int) -> list[Content]:
        """Strategy and countdown, the agents, the reasons, the keys."""
        card = self._card
        if card is None:
            return []
        rows = [_spread(self._heading(card), Content.styled(self._countdown(), Tone.NEEDS_YOU.value), width)]
        rows += self._agent_rows(width)
        if card.route.reasoning:
            reason = Content.styled(f"why: {clean_line(card.route.reasoning)[:LONGEST]}", Tone.QUIET.value)
            rows += _cut(hanging(reason, 0, width), self._rows_each, width)
        rows.append(_keys(CHOOSING if self.has_focus else KEYS, width))
        return rows

    @property
    def _rows_each(self) -> int:
        return 1 if self.screen.size.height < SMALL else ROWS_EACH

    def _heading(self, card: RouteCard) -> Content:
        route, count = card.route, len(self._agents)
        strategy = Strategy.DELEGATE if count == 1 else route.strategy
        words = strategy_words(strategy, count)
        return Content.assemble(
            (f"{AGENTS.mark(self._plain)} ", AGENTS.tone.value),
            (words, "bold"),
            (f" · {route.confidence:.0%} sure", Tone.QUIET.value),
        )

    def _countdown(self) -> str:
        if self._card is None:
            return ""
        if not self._card.starts_at:
            return "waits for you"
        return f"starts in {max(int(self._card.starts_at - self._clock()) + 1, 0)} s"

    def _agent_rows(self, width: int) -> list[Content]:
        most = MOST_AGENTS if self._rows_each > 1 else MOST_AGENTS - 2
        first = max(0, min(self._chosen - most // 2, len(self._agents) - most))
        shown = self._agents[first : first + most]
        rows: list[Content] = []
        for place, agent in enumerate(shown, first + 1):
            rows += self._agent_row(place, agent, width)
        if more := len(self._agents) - len(shown):
            rows.append(Content.styled(f"  +{more} more", Tone.QUIET.value))
        return rows

    def _agent_row(self, place: int, agent: RouteAgent, width: int) -> list[Content]:
        urgent = _name(agent).removeprefix(clean_line(agent.profile))
        number = f"{place:>{len(str(len(self._agents)))}} "
        line = Content.assemble(
            (number, Tone.QUIET.value),
            (clean_line(agent.profile), Tone.YOU.value),
            (urgent, Tone.QUIET.value),
            f"  {clean_line(agent.task[:LONGEST])}",
        )
        rows = _cut(hanging(line, len(number), width), self._rows_each, width)
        if self.has_focus and place == self._chosen + 1:
            rows = [Content.styled(row.plain, "reverse") for row in rows]
        return rows


def as_text(agents: tuple[RouteAgent, ...]) -> str:
    """The agents of a decision as text to edit."""
    return "\n\n".join(f"{MARK}{_name(agent)}\n{clean(agent.task)}" for agent in agents)


def _name(agent: RouteAgent) -> str:
    normal = agent.priority is RunPriority.NORMAL
    return clean_line(agent.profile) if normal else f"{clean_line(agent.profile)} ({agent.priority.value})"


def _agent_of(name: str, task: str) -> RouteAgent:
    """What stands behind the mark: a profile, and maybe how urgent its task is."""
    profile, _, word = name.removesuffix(")").partition(" (")
    return RouteAgent(profile.strip(), task, RunPriority(word) if word in set(RunPriority) else RunPriority.NORMAL)


def from_text(text: str) -> tuple[RouteAgent, ...]:
    """What the edited text names; an agent without a task is left out."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(MARK.strip() + " "):
            found.append((line.removeprefix(MARK).strip(), []))
        elif found:
            found[-1][1].append(line)
    agents = [_agent_of(name, "\n".join(lines).strip()) for name, lines in found]
    return tuple(agent for agent in agents if agent.profile and agent.task)


def _spread(left: Content, right: Content, width: int) -> Content:
    gap = width - left.cell_length - right.cell_length
    if gap < 1:
        left = left.truncate(max(width - right.cell_length - 1, 1), ellipsis=True)
        gap = max(width - left.cell_length - right.cell_length, 0)
    return Content.assemble(left, " " * gap, right)


def _cut(rows: list[Content], most: int, width: int) -> list[Content]:
    """At most so many rows; the last one says that there is more."""
    if len(rows) <= most:
        return rows
    last = Content.assemble(rows[most - 1].rstrip(), " …")
    return [
        *rows[: most - 1],
        last if last.cell_length <= width else rows[most - 1].truncate(width - 2) + Content(" …"),
    ]


def _keys(words: tuple[str, ...], width: int) -> Content:
    """As many of the keys as there is room for."""
    row = Content("")
    for word in words:
        letter, _, meaning = word.partition(" ")
        more = Content.assemble(row, "   " if row.plain else "", (letter, "bold"), (f" {meaning}", Tone.QUIET.value))
        if more.cell_length > width:
            break
        row = more
    return row
