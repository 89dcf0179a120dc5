"""The summary of older messages, before it takes effect: taken, changed, made again or dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.api.conversation import Unsubscribe
from engine.executor.requests import DropSummary, Proposal, SummarizeAgain, SummaryDecision, TakeSummary
from engine.updates import Update
from phoenix_tui.features.compaction import SummaryReview
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.edit_sheet import EditSheet
from phoenix_tui.modals.line_sheet import LineSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.answer_gate import AnswerGate
from tools.clean import clean

WORKING: Final = "the model is writing…"
STOPS: Final = "Esc stops"
DROPS: Final = "Esc discards it"


class SummarySheet(Sheet[str]):
    """Asks for a summary and shows it; gives why it was refused, None otherwise."""

    DEFAULT_CSS = """
    SummarySheet {
        & > .sheet { max-height: 92%; }
        & Static { height: auto; }
        & #summary { max-width: 102; }
        & VerticalScroll { height: auto; max-height: 76vh; scrollbar-size-vertical: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.SUMMARY)

    def __init__(self, summary: SummaryReview) -> None:
        super().__init__()
        self._summary = summary
        self.gate = AnswerGate()
        """Gate that delays the acceptance of a summary."""
        self.decides: Callable[[bool], None] = lambda _: None
        """Called with True while a summary waits for a decision."""
        self._asked = False
        """True once the request was accepted: it ends when the conversation is idle again."""
        self._unsubscribe: Unsubscribe | None = None

    def compose(self) -> ComposeResult:
        """Heading, the summary, the keys."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            with VerticalScroll():
                yield Static(id="summary", markup=False)

    async def on_mount(self) -> None:
        """Ask for the summary."""
        self._draw()
        self._unsubscribe = await self._summary.conversation.subscribe(self._follow)
        if refusal := await self._summary.request(self.review):
            self.dismiss(refusal)
            return
        self._asked = True
        self._end_at_rest()

    def go_on(self) -> None:
        """Close it if the summary ended while another sheet was over it."""
        super().go_on()
        self._end_at_rest()

    def on_unmount(self) -> None:
        """Drop the summary, so that the engine does not wait for an answer."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._decide(DropSummary())

    async def review(self, proposal: Proposal) -> SummaryDecision:
        """Show a summary and wait for the user's decision."""
        if not self.is_mounted:
            return DropSummary()
        verdict = self._summary.offer(proposal)
        self.gate.begin()
        self._draw()
        self.query_one(VerticalScroll).scroll_home(animate=False)
        return await verdict

    def action_take(self) -> None:
        """Replace the older messages by the summary; not by an Enter pressed before it was shown."""
        if self._summary.proposal is not None and self._summary.waits and self.gate.is_open:
            self._decide(TakeSummary(self._summary.proposal.summary))

    def action_change(self) -> None:
        """Edit the summary; the kept text takes effect."""
        if self._summary.proposal is not None and self._summary.waits:
            self.app.push_screen(EditSheet("Edit the summary", self._summary.proposal.summary), self._changed)

    def action_again(self) -> None:
        """Another one, with a hint."""
        if self._summary.waits:
            self.app.push_screen(LineSheet("What matters most? Empty: no change"), self._hinted)

    def action_scroll(self, by: int) -> None:
        """Move by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_close(self) -> None:
        """Drop the summary, or stop the model that writes it."""
        self._asked = False  # its end must not close the sheet again
        if not self._summary.waits:
            self._summary.stop()
        self.dismiss(None)

    def _changed(self, text: str | None) -> None:
        if text is not None and text.strip():
            self._decide(TakeSummary(text))

    def _hinted(self, hint: str | None) -> None:
        if hint is not None:
            self._decide(SummarizeAgain(hint.strip()))

    def _decide(self, verdict: SummaryDecision) -> None:
        self._summary.decide(verdict)
        self.decides(False)
        if not isinstance(verdict, DropSummary):
            self._draw()

    def _follow(self, _: Update) -> None:
        self._end_at_rest()

    def _end_at_rest(self) -> None:
        """Close once the summary is in force, or none was made: the conversation says which."""
        if self._asked and self.is_active and self._summary.is_over:
            self._asked = False
            self.dismiss(None)

    def _draw(self) -> None:
        proposal = self._summary.proposal
        if proposal is None:
            heading = Content.assemble(("Summary", "bold"), (f"  {WORKING}", Tone.QUIET.value))
        else:
            counts = f"  of {proposal.summarized} messages, {proposal.kept} kept · {proposal.sizes}"
            keys = _keys() if self._summary.waits else WORKING
            problem = f"\n{clean(proposal.problem).rstrip('.')}." if proposal.problem else ""
            heading = Content.assemble(
                ("Summary", "bold"), counts, (f"\n{keys}", Tone.QUIET.value), (problem, Tone.BAD.value), "\n"
            )
            self.query_one("#summary", Static).update(Content(clean(proposal.summary)))
        self.query_one("#heading", Static).update(heading)
        self.show_esc_hint(DROPS if self._summary.waits else STOPS)
        self.decides(self._summary.waits)


def _keys() -> str:
    return hint(("summary_take", "uses it"), ("summary_change", "edits"), ("summary_again", "regenerates"))
