"""The todo list above the composer: one row, or all items, which the user may change."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.keys.active_keys import BACK, hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.task_text import TODO_SIGNS
from phoenix_tui.widgets.bases import Opened, Still
from tools.clean import clean_line
from tools.displays import TodoItem, TodoList, TodoStatus

SHARE: Final = 3
"""The panel takes this part of the screen's rows at most."""
LEAST_ROWS: Final = 3
SIDES: Final = 3
TONES: Final = {
    TodoStatus.PENDING: "",
    TodoStatus.IN_PROGRESS: "bold",
    TodoStatus.COMPLETED: Tone.QUIET.value,
    TodoStatus.CANCELLED: Tone.QUIET.value,
}


class TodoPanel(Still, Widget):
    """Shown while the list has something left to do, and until the end of the run that finished it."""

    DEFAULT_CSS = """
    TodoPanel {
        height: auto; display: none; padding: 0 1; border-left: heavy $panel; background: $background;
        text-wrap: nowrap;
        &:focus { border-left: heavy $accent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TODO)
    HELP = "Todo list. Space completes an item or opens it again, Enter edits it, Del drops it, a adds one."
    can_focus = True
    chosen: reactive[int] = reactive(0)
    """The item that the keys mean."""

    class Left(Message, namespace="todo_panel"):
        """The keys belong to the composer again."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self.todos = TodoList()
        self.unfolded = False
        """True while all items are shown."""

    def show(self, todos: TodoList, *, works: bool) -> None:
        """Show this list; `works`: a run is under way, and a finished list stays until its end."""
        if todos == self.todos and self.display is self._is_wanted(todos, works=works):
            return
        self.todos = todos
        self.chosen = min(self.chosen, max(len(todos.items) - 1, 0)) if self.has_focus else self._current
        self.display = self._is_wanted(todos, works=works)
        if not self.display:
            self.unfolded = False
            if self.has_focus:
                self.post_message(self.Left())
        self.refresh(layout=True)

    @staticmethod
    def _is_wanted(todos: TodoList, *, works: bool) -> bool:
        return todos.is_open or (works and bool(todos.items))

    def toggle(self) -> None:
        self.unfolded = not self.unfolded
        if self.unfolded:
            self.chosen = self._current
            self.focus()
        elif self.has_focus:
            self.post_message(self.Left())
        self.refresh(layout=True)

    def on_focus(self) -> None:
        self.unfolded = True
        self.post_message(Opened(BACK))
        self.refresh(layout=True)

    def on_blur(self) -> None:
        self.post_message(Opened(""))
        self.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        row = event.y - 1 + self._first
        if event.y and self.unfolded and 0 <= row < len(self.todos.items):
            self.chosen = row
            self.focus()
        else:
            self.toggle()

    def action_row(self, by: int) -> None:
        row = self.chosen + by
        if row >= len(self.todos.items):
            self.post_message(self.Left())
        else:
            self.chosen = max(row, 0)

    async def action_todo(self, word: str) -> None:
        """Change the list as `/todo` does, the chosen item where one is meant."""
        number = "" if word == "add" else f" {self.chosen + 1}"
        await self.run_action(f"screen.command({f'todo {word}{number}'!r})")

    @property
    def _current(self) -> int:
        current = self.todos.current
        return self.todos.items.index(current) if current is not None else 0

    @property
    def _rows(self) -> int:
        room = max(self.screen.size.height // SHARE - 1, LEAST_ROWS) if self.is_attached else LEAST_ROWS
        return min(len(self.todos.items), room)

    @property
    def _first(self) -> int:
        """Index of the first shown item: the chosen one is in sight, with one behind it."""
        return max(min(self.chosen - self._rows + 2, len(self.todos.items) - self._rows), 0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        hidden = len(self.todos.items) > self._rows
        return 1 + self._rows + hidden if self.unfolded else 1

    def render(self) -> Content:
        width = max(self.size.width, 1)
        if not self.unfolded:
            return self._draw_heading(width)
        first, rows, items = self._first, self._rows, self.todos.items
        shown = items[first : first + rows]
        lines = [self._draw_heading(width), *(self._row(place, one, width) for place, one in enumerate(shown, first))]
        if len(items) > rows:
            lines.append(Content.styled(f"{first + 1} to {first + rows} of {len(items)}", Tone.QUIET.value))
        return Content("\n").join(lines)

    def _draw_heading(self, width: int) -> Content:
        current = self.todos.current
        words = clean_line(current.words) if current is not None and not self.unfolded else ""
        left = Content.assemble(
            (f"todo {self.todos.progress}", "bold"),
            (f" {words}" if words else "", ""),
        )
        keys = next((one for one in self._hints() if left.cell_length + len(one) + SIDES <= width), "")
        room = max(width - len(keys) - (1 if keys else 0), 1)
        left = left.truncate(room, ellipsis=True)
        gap = max(width - left.cell_length - len(keys), 0)
        return Content.assemble(left, " " * gap, (keys, Tone.QUIET.value))

    def _hints(self) -> tuple[str, ...]:
        if not self.has_focus:
            return (hint(("todo", "folds" if self.unfolded else "shows all")),)
        change = (("todo_done", "done"), ("todo_edit", "edits"), ("todo_drop", "drops"), ("todo_add", "adds"))
        return hint(*change, ("todo", "folds")), hint(*change), hint(*change[:2])

    def _row(self, place: int, item: TodoItem, width: int) -> Content:
        number = f"{place + 1:>{len(str(len(self.todos.items)))}} "
        mark = f"{TODO_SIGNS[item.status].mark(self._plain)} "
        text = Content(clean_line(item.content)).truncate(max(width - len(number) - len(mark), 1), ellipsis=True)
        if self.has_focus and place == self.chosen:
            return Content.styled(f"{number}{mark}{text.plain}", "reverse")
        tone = TONES[item.status]
        return Content.assemble((number, Tone.QUIET.value), (mark, tone), text.stylize(tone))
