"""The background commands of a conversation: their output and state; one can be read whole or ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.features.agents import end_job, output_lines, output_of
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.agent_text import how_it_stands, running
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from tools.clean import clean_line
from tools.contract import JobInfo
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.executor.effect_runner import BackgroundJobs

TICK: Final = 1.0
SHARE: Final = 0.7
"""Share of the screen's height that a sheet takes at most (`Sheet`)."""
CHROME: Final = 3
"""Rows beside those of commands and output: rule, heading, blank."""
LEAST_OUTPUT: Final = 3
POINTER: Final = 2
"""Cells of the sign before a row."""
GAP: Final = "  "


class JobsSheet(Sheet[None]):
    """Shows the jobs and stays open during actions; the newest lines of the selected one are below the rows."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = "JobsSheet { & Static { height: auto; } & #output { margin: 1 0 0 2; } }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.JOBS)]

    def __init__(self, active: BackgroundJobs, front: FrontEnd) -> None:
        super().__init__()
        self._jobs = active
        self._front = front
        self._chosen = max(len(active.all()) - 1, 0)
        self._first = 0
        """The place of the row on top."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="output", markup=False)

    def on_mount(self) -> None:
        """Look again each second while it is open."""
        self.set_interval(TICK, self._draw)
        self._draw()

    @property
    def _one(self) -> JobInfo | None:
        jobs = self._jobs.all()
        return jobs[min(self._chosen, len(jobs) - 1)] if jobs else None

    def _draw(self) -> None:
        jobs, job, width = self._jobs.all(), self._one, self.measure
        runs = running(jobs)
        count = pluralize(len(jobs), "background command")
        keys = hint(("sheet_take", "shows output"), ("job_end", "stops"))
        heading = Content.assemble(
            (count, "bold"), (f" · {runs} running" if runs else "", Tone.WORK.value), (f"   {keys}", Tone.QUIET.value)
        )
        self.query_one("#heading", Static).update(heading.truncate(width, ellipsis=True))
        room = max(int(self.size.height * SHARE) - CHROME, 2)
        most = max(min(len(jobs), room - LEAST_OUTPUT), 1)
        self._first = first_visible(self._chosen, len(jobs), most)
        shown = enumerate(jobs[self._first : self._first + most], start=self._first)
        rows = [_row(one, width, chosen=place == self._chosen) for place, one in shown]
        self.query_one("#rows", Static).update(Content("\n").join(rows))
        lines = output_lines(self._jobs, job)[-max(room - most, 1) :] if job is not None else []
        newest = [Content(line).truncate(width - POINTER, ellipsis=True) for line in lines]
        output = Content("\n").join(newest) if newest else Content.styled("no output yet", Tone.QUIET.value)
        self.query_one("#output", Static).update(output)

    @on(events.Click, "#rows")
    def point(self, event: events.Click) -> None:
        """A click chooses a row, one on the chosen row reads it."""
        place = self._first + event.y
        if place == self._chosen:
            self.action_take()
        else:
            self.action_move(place - self._chosen)

    def action_move(self, by: int) -> None:
        self._chosen = move_choice(self._chosen, by, len(self._jobs.all()))
        self._draw()

    def action_take(self) -> None:
        """Read all that the chosen one has printed."""
        if self._one is None:
            return
        output = output_of(self._jobs, self._one)
        text = Content.assemble((f"{output.before}\n" if output.before else "", Tone.QUIET.value), output.text)
        self.app.push_screen(TextSheet(output.heading, text, at_end=True))

    def action_end(self) -> None:
        """End the chosen one with everything it started."""
        if self._one is not None:
            self.run_worker(self._end(self._one), group="end")

    async def _end(self, job: JobInfo) -> None:
        await end_job(self._front, self._jobs, job)
        self._draw()


def _row(job: JobInfo, width: int, *, chosen: bool) -> Content:
    state = how_it_stands(job)
    tone = Tone.WORK if job.running else Tone.QUIET if job.exit_code == 0 else Tone.BAD
    room = max(width - POINTER - len(GAP) - len(state), 1)
    words = Content(clean_line(job.command)).truncate(room, ellipsis=True, pad=True)
    line = Content.assemble("› " if chosen else "  ", words, GAP, (state, tone.value)).truncate(width)
    return Content.styled(line.plain, "reverse") if chosen else line
