"""The list of conversations: one widget that draws the lines in view and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rich.style import Style
from textual import events, on
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.text.labels import AGES_EVERY, Tone
from phoenix_tui.widgets.list_model import Line, ListModel
from phoenix_tui.widgets.list_painter import ListPainter
from phoenix_tui.widgets.opened import Opened
from phoenix_tui.widgets.roster import Group, Live
from phoenix_tui.widgets.still import Still, Ticker
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.records import ConversationSummary

TONE_CLASSES: Final[dict[Tone, str]] = {tone: f"list--{tone.name.lower().replace('_', '-')}" for tone in Tone}
SHOWS_ALL: Final = "Esc shows all"
UNMARKS: Final = "Esc unmarks"
ZOOMED: Final = "-list-zoomed"
"""Class of a list over the whole screen."""
ERASERS: Final[dict[str, Callable[[str], str]]] = {
    "backspace": lambda text: text[:-1],
    "ctrl+h": lambda text: text[:-1],
    "ctrl+w": lambda text: text.rstrip().rpartition(" ")[0],
    "ctrl+u": lambda _: "",
}
"""Keys that take something from the filter."""


class ConversationList(Still, Widget):
    """Every conversation with its state; groups by need. Posts the choice; knows no engine."""

    can_focus = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES.values(), "list--current"}
    DEFAULT_CSS = """
    ConversationList {
        background: $background; color: $foreground;
        & .list--you { color: $accent; }
        & .list--work { color: $primary; }
        & .list--needs-you { color: $warning; }
        & .list--good { color: $success; }
        & .list--bad { color: $error; }
        & .list--quiet { color: $text-muted; }
        & .list--current { text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LIST)
    HELP = "All conversations. Enter opens, p previews, / filters, space marks; F1 lists every key."

    class Opened(Message):
        """Posted to open this conversation."""

        def __init__(self, conversation_id: str) -> None:  # a dataclass takes five times as long to define
            super().__init__()
            self.conversation_id = conversation_id

    class Wanted(Message):
        """Posted for an action: `rename`, `archive`, `delete`, `pin`, `stop`, `fork`, `peek`, `restore`..."""

        def __init__(self, action: str, ids: tuple[str, ...]) -> None:
            super().__init__()
            self.action = action
            self.ids = ids
            """Ids of everything marked, else of the one under the cursor."""

    class EndedUnseen(Message):
        """A run ended in a conversation that is not on the screen."""

        def __init__(self, conversation_id: str) -> None:
            super().__init__()
            self.conversation_id = conversation_id

    def __init__(
        self,
        *,
        plain: bool = False,
        id: str | None = None,
        view: Group | None = None,
    ) -> None:
        super().__init__(id=id)
        self._plain = plain
        self.model = ListModel(view)
        self._lines: list[Line] = []
        """Visible lines, as last drawn."""
        self._stands = (0, "", 0)
        """Start of the window at that time, the text of its foot, and the row of the cursor."""
        self.ticker = Ticker(self, 1.0, lambda: self._look(everything=False))
        self.ages = Ticker(self, AGES_EVERY, lambda: self._look(everything=False))
        """Timer for the ages of idle conversations; wakes once a minute, and paints the rows whose text changes."""
        self._esc_hint = ""

    @property
    def takes_text(self) -> bool:
        """True while letters are written into its filter."""
        return self.model.filtering

    def show(self, summaries: Sequence[ConversationSummary], live: Mapping[str, Live], current: str) -> None:
        """Show these; `current` is the one on the screen."""
        moved = current != self.model.current or not self.model.known
        self.model.fill(summaries, live, current)
        self.model.arrange(self.model.chosen if self.has_focus else current, at_top=not self.has_focus)
        self._look(everything=moved)
        self._keep_time()

    def sign(self, folder: Path, sign: str) -> None:
        """Show this sign beside the worktree `folder`."""
        if self.model.signs.get(folder, "") != sign:
            self.model.signs[folder] = sign
            self._look(everything=False)

    def _look(self, *, everything: bool = True) -> None:
        """Draw the visible part; a list of many rows in which a clock moves costs one row."""
        if self.size.height and self.model.height != self.size.height - 1:
            self.model.resize(self.size.height - 1)  # its resize may still be pending: a frame may cover many keys
        if (words := list_hint(self.model)) != self._esc_hint:
            self._esc_hint = words
            self.post_message(Opened(words))
        before, self._lines = self._lines, self.model.visible()
        stood, self._stands = self._stands, (self.model.top, self.model.count(), self.model.row)
        if everything or len(before) != len(self._lines) or stood[:2] != self._stands[:2]:
            self.refresh()
            return
        changed = {row for row, line in enumerate(self._lines) if line != before[row]}
        if stood != self._stands:
            changed |= {stood[2], self._stands[2]} & set(range(len(before)))
        if changed:
            self.refresh(*(Region(0, row, self.size.width, 1) for row in changed))

    def _keep_time(self) -> None:
        seen = self.display and self.is_on_screen
        self.ticker.run(seen and self.model.moves)
        self.ages.run(seen and bool(self.model.order) and not self.model.moves)

    def render_line(self, y: int) -> Strip:
        """One line: a heading, a conversation, or the foot of the list."""
        width, focused = self.size.width, self.has_focus
        painter = ListPainter(self.model, self.rich_style, self._style, width, plain=self._plain, focused=focused)
        if y == self.size.height - 1:
            return painter.foot()
        return painter.line(self._lines[y], y) if y < len(self._lines) else painter.hint(y)

    def _style(self, tone: Tone | None) -> Style:
        """Colour of a tone; None for highlighted text."""
        return self.get_component_rich_style("list--current" if tone is None else TONE_CLASSES[tone])

    def on_focus(self) -> None:
        """Start at the conversation on the screen."""
        self.model.choose(self.model.current)
        self._look()

    def on_blur(self) -> None:
        """Clear filter and marks; a list over the whole screen closes."""
        self.leave()
        self.remove_class(ZOOMED)
        self.post_message(Opened(""))

    def leave(self) -> bool:
        """Esc: end the filter, then the marks; False when there was neither."""
        had = bool(list_hint(self.model))
        if self.model.filtering or self.model.text:
            self._find("", going_on=False)
        else:
            self.model.marked.clear()
        self._look()
        return had

    def on_resize(self) -> None:
        """Keep the chosen one in view; the last row is the foot."""
        self.model.resize(self.size.height - 1)
        self._look()
        self._keep_time()

    def on_click(self, event: events.Click) -> None:
        """Open the clicked row; in archive and trash it is only chosen."""
        if event.y < len(self._lines) and (conversation_id := self.model.id_at(self.model.top + event.y)):
            self.model.choose(conversation_id)
            self._look()
            if self.model.view is None:
                self.post_message(self.Opened(conversation_id))

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def roll(self, event: events.MouseScrollDown | events.MouseScrollUp) -> None:
        """The wheel."""
        self.model.roll(1 if isinstance(event, events.MouseScrollDown) else -1)
        self._look()

    async def on_key(self, event: events.Key) -> None:
        """Handle letters of a filter while one is written.

        Otherwise its own keys run at once: a binding runs later, behind letters of a filter typed in haste, and would
        meet another row than the one it was meant for.
        """
        if self.model.filtering and event.key in ERASERS:
            self._find(ERASERS[event.key](self.model.text))
        elif self.model.filtering and event.is_printable and event.character:
            self._find(self.model.text + event.character)
        elif (bound := self.screen.active_bindings.get(event.key)) is not None and bound.node is self:
            await self.run_action(bound.binding.action)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """A pasted filter."""
        event.stop()
        self._find(self.model.text + clean_line(event.text[:200]).strip())

    def _find(self, text: str, *, going_on: bool = True) -> None:
        self.model.filtering, self.model.text = going_on, text
        self.model.arrange()
        if going_on:
            self.model.choose("")
        self._look()

    def action_row(self, by: int, early: bool = False) -> None:
        """Move the cursor by some conversations; keys that come ahead of others wait for those typed before."""
        if early:
            self.call_later(self.action_row, by)
            return
        self.model.step(by)
        self._look(everything=False)

    def action_filter(self) -> None:
        """Write the filter."""
        self._find(self.model.text)

    def action_mark(self) -> None:
        """Mark or unmark the chosen one."""
        self.model.mark()
        self._look()

    def action_open(self) -> None:
        """Open the chosen one."""
        if self.model.chosen:
            self.post_message(self.Opened(self.model.chosen))

    def action_want(self, action: str) -> None:
        """Ask for something to be done to everything marked, or to the chosen one."""
        self.post_message(self.Wanted(action, self.model.targets))


def list_hint(model: ListModel) -> str:
    """Action of Esc on filter and marks; empty where there are none."""
    return SHOWS_ALL if model.filtering or model.text else UNMARKS if model.marked else ""
