"""The card of a supervisor's decision: agents, tasks and reasons, while it can be overruled."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from engine.executor.requests import Receipt, Refused
from engine.routes import AnswerAlone, RouteAgent, RouteCard, RouteVerdict, StartAgents
from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.widgets.answer_gate import AnswerGate
from phoenix_tui.widgets.route_rows import Shown, as_text, card_rows, countdown, from_text
from phoenix_tui.widgets.still import Still, Ticker
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from phoenix_tui.widgets.notices import Notifier

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
        self._conversation: ConversationApi | None = None
        self._toasts: Notifier | None = None
        self._ticker = Ticker(self, TICK, self._tick)
        self._drawn = ""
        self._edited_text = ""
        """Last edited text that could not be started."""

    def show(
        self, card: RouteCard | None, conversation: ConversationApi | None = None, toasts: Notifier | None = None
    ) -> None:
        """Show a decision of this conversation, or none."""
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
        """Redraw the keys, which depend on the focus."""
        self.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        """The card takes the keys."""
        event.stop()
        self.focus()

    @property
    def is_open(self) -> bool:
        """True while there is something to decide."""
        return self._card is not None

    @property
    def left(self) -> int:
        """Number of remaining agents of the decision."""
        return len(self._agents)

    # Actions.

    def press(self, key: str) -> None:
        """A letter on an empty line."""
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
        """Change profiles and tasks as text."""
        if not self._hold():
            return
        from phoenix_tui.modals.edit_sheet import EditSheet  # noqa: PLC0415 - behind the first frame, seldom wanted

        sheet = EditSheet(HEADING, self._edited_text or as_text(self._agents))
        self.app.push_screen(sheet, self._edited)  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open

    def _edited(self, text: str | None) -> None:
        if text is None:
            return
        self._edited_text, agents = text, from_text(text)
        if not agents and self._toasts is not None:
            self._toasts.tell(NO_AGENT, bad=True)
        if not agents or not self._answer(StartAgents(agents)):
            self.action_edit()  # the text is kept for correction

    def _hold(self) -> bool:
        card, conversation = self._card, self._conversation
        return card is not None and conversation is not None and self._heard(conversation.routing.hold(card.id))

    def _answer(self, verdict: RouteVerdict) -> bool:
        if self._card is None or self._conversation is None:
            return False
        return self._heard(self._conversation.routing.answer(self._card.id, verdict))

    def _heard(self, receipt: Receipt) -> bool:
        if isinstance(receipt, Refused) and self._toasts is not None:
            self._toasts.tell(receipt.reason, bad=True)
        return not isinstance(receipt, Refused)

    # Drawing.

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Number of rows at `width`."""
        return len(self._rows(max(width, 1)))

    def render(self) -> Content:
        """The rows."""
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
