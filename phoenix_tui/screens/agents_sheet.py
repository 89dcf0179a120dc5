"""Every sub-agent of a conversation, those of earlier days too: open, show beside, stop, send a hint."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import EngineError
from engine.ports import StorageError
from engine.updates import AgentView
from phoenix_tui.agents_surface import AgentsSurface
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.labels import Tone
from phoenix_tui.screens.ask_line import AskLineScreen
from phoenix_tui.screens.base import Sheet
from phoenix_tui.screens.parts import Teller
from phoenix_tui.sub_agents import at_work
from phoenix_tui.widgets.agent_rows import agent_rows, ending_words
from phoenix_tui.widgets.status_line import short_model
from tools.clean import clean, clean_line

BESIDE: Final = "beside:"
"""Before the id of one that is to be shown in a pane beside."""
TICK: Final = 1.0
SIDES: Final = 2
POINTER: Final = 2
"""Cells of the sign before a row."""
SHARE: Final = 0.7
CHROME: Final = 9
"""Rows of the sheet beside the rows: rule, heading, blank, and the six of what is said of the chosen one."""
DETAIL_ROWS: Final = 6
HINT: Final = "Enter opens · x stops · h hint · X stops all · | beside · Esc closes"


class AgentsSheet(Sheet[str]):
    """Gives the id of the one to open, with `BESIDE` before it for a pane; the rest happens while it stays open."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = "AgentsSheet { & Static { height: auto; } & #detail { margin: 1 0 0 2; } }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.AGENTS)]

    def __init__(
        self,
        crew: AgentsSurface,
        parent_id: str,
        tell: Teller,
        *,
        plain: bool = False,
        current: str = "",
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._crew = crew
        self._parent_id = parent_id
        self._tell = tell
        self._plain = plain
        self._wall = wall
        self._chosen = next((place for place, one in enumerate(self._views) if one.id == current), 0)

    @property
    def _views(self) -> list[AgentView]:
        return list(self._crew.views(self._parent_id))

    @property
    def _one(self) -> AgentView:
        return self._views[min(self._chosen, len(self._views) - 1)]

    def compose(self) -> ComposeResult:
        """Heading, rows, and what is to be said of the chosen one."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)

    def on_mount(self) -> None:
        """Look again each second while it is open."""
        self.set_interval(TICK, self._draw)
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def _draw(self) -> None:
        views, width = self._views, max(self.size.width - SIDES, 1)
        working = len(at_work(views))
        head = Content.assemble(
            (f"{len(views)} sub-agent{'s' if len(views) > 1 else ''}", "bold"),
            (f" · {working} at work" if working else "", Tone.WORK.value),
            (f"   {HINT}", Tone.QUIET.value),
        )
        self.query_one("#heading", Static).update(head.truncate(width, ellipsis=True))
        rows = agent_rows(views, width - POINTER, self._wall(), plain=self._plain)
        room = max(int(self.size.height * SHARE) - CHROME, 3)
        first = max(min(self._chosen - room // 2, len(rows) - room), 0)
        shown = [self._marked(row, place) for place, row in enumerate(rows)][first : first + room]
        self.query_one("#rows", Static).update(Content("\n").join(shown))
        self.query_one("#detail", Static).update(self._detail(self._one, width - POINTER))

    def _marked(self, row: Content, place: int) -> Content:
        if place != self._chosen:
            return Content.assemble("  ", row)
        return Content.styled(f"› {row.plain}".ljust(1), "reverse")

    def _detail(self, view: AgentView, width: int) -> Content:
        """Task, who does it, and how it ended."""
        kind = "in the background" if view.background else "its parent waits for it"
        facts = " · ".join(
            part for part in (clean_line(view.profile) or "general", short_model(view.model), kind) if part
        )
        lines = Content(clean(view.task).strip()).wrap(width)[: DETAIL_ROWS - 3]
        lines.append(Content.styled(facts, Tone.QUIET.value))
        if view.outcome is not None:
            said = view.outcome.text if not view.outcome.reason else ending_words(view.outcome)
            lines += Content("\n".join(line for line in clean(said).splitlines() if line.strip())).wrap(width)[:3]
        return Content("\n").join(lines[:DETAIL_ROWS])

    def action_move(self, by: int) -> None:
        """Choose another one."""
        self._chosen = max(0, min(self._chosen + by, len(self._views) - 1))
        self._draw()

    def action_take(self) -> None:
        """Open its transcript."""
        self.dismiss(self._one.id)

    def action_beside(self) -> None:
        """Open it in a pane beside."""
        self.dismiss(f"{BESIDE}{self._one.id}")

    def action_stop_one(self) -> None:
        """Stop the chosen one; its parent gets what it had found."""
        if self._one.outcome is not None:
            self._tell("It has ended already.")
            return
        self._crew.stop((self._one.id,))
        self._draw()

    def action_stop_all(self) -> None:
        """Stop all of them."""
        working = at_work(self._views)
        self._crew.stop([view.id for view in working])
        self._tell(f"{len(working)} stopped; what they found is kept." if working else "None is at work.")
        self._draw()

    def action_hint(self) -> None:
        """A line that it reads before its next step; one that has ended goes on with it."""
        self.run_worker(self._hint(self._one), group="hint", exclusive=True)

    async def _hint(self, view: AgentView) -> None:
        name = clean_line(" ".join(view.task.split()))[:40]
        ended = " (it goes on in the background)" if view.outcome is not None else ""
        text = await self.app.push_screen_wait(AskLineScreen(f"Hint for {name}{ended}"))
        if not text or not text.strip():
            return
        try:
            await self._crew.hint(view.id, text.strip())
        except (EngineError, StorageError) as error:
            self._tell(str(error), bad=True)
            return
        self._tell("Sent: it reads it before its next step.")
        self._draw()
