"""Contents of a conversation's context window, and the summary of older messages before it takes effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.context.measure import Filling, WindowPart
from engine.executor.context_manager import HIGHEST, STEP, ContextReport, Edited
from engine.executor.requests import DropSummary, Proposal, Refused, SummarizeAgain, SummaryDecision, TakeSummary
from engine.machine.messages import Role
from engine.machine.views import OmissionKind
from engine.updates import ContextChanged, MessageSaved, Unsubscribe, Update
from phoenix_tui.features.context_window import SummaryReview
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import EditSheet, LineSheet
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.context_text import compaction_lines, use_in_words
from phoenix_tui.text.labels import Tone, short_model, tokens
from phoenix_tui.widgets.answer_gate import AnswerGate
from phoenix_tui.widgets.bases import first_visible, move_choice, run_latest
from phoenix_tui.widgets.status_line import FULL, NOTICED, ContextUse
from tools.clean import clean, clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation

NEVER: Final = 100
"""Per cent above which nothing is summarized by itself."""
COLOURS: Final[dict[Filling, str]] = {
    Filling.SYSTEM: "$text-muted",
    Filling.TOOLS: "$text-muted",
    Filling.INSTRUCTIONS: "$foreground",
    Filling.SUMMARY: "$foreground",
    Filling.HISTORY: "$primary",
    Filling.RESULTS: "$accent",
    Filling.IMAGES: "$success",
    Filling.THINKING: "$text-muted",
}
SIGNS: Final[dict[Filling, str]] = {
    Filling.SYSTEM: "s",
    Filling.TOOLS: "t",
    Filling.INSTRUCTIONS: "i",
    Filling.SUMMARY: "y",
    Filling.HISTORY: "m",
    Filling.RESULTS: "r",
    Filling.IMAGES: "g",
    Filling.THINKING: "k",
}
"""Letters of the bar where there are no colours."""
NAME_WIDTH: Final = max(len(filling.value) for filling in Filling)
FREE: Final = "free"
SHARE: Final = 2 + NAME_WIDTH + 7 + 6
"""Cells of one share."""


def headline(report: ContextReport, model: str) -> Content:
    use = ContextUse(report.tokens, report.window, report.estimated)
    about = "~" if report.estimated else ""
    if model == GUIDE and not report.window:
        return Content.assemble(("Context", "bold"), f"  {model} follows rules and has no context window")
    if use.percent is None:
        return Content.assemble(
            ("Context", "bold"), f"  {about}{report.tokens:,} tokens, the window of {model} is unknown"
        )
    full = (f"{about}{use.percent} %", f"bold {use.tone.value}" if use.tone is not Tone.QUIET else "bold")
    return Content.assemble(
        ("Context", "bold"), f"  {about}{report.tokens:,} of {report.window:,} tokens · ", full, f" · {model}"
    )


def bar(report: ContextReport, width: int, *, plain: bool) -> Content:
    """One cell for each `width`-th of the window, coloured by its content: as many as are full."""
    size = max(report.window, report.tokens, 1)
    pieces: list[tuple[str, str]] = []
    shares = [(filling, count) for filling, count in report.measured.shares if count > 0]
    total = max(sum(count for _, count in shares), 1)
    full = min(max(round(width * report.tokens / size), 1 if shares else 0), width)
    used = summed = 0
    for filling, count in shares:
        summed += count
        cells = round(full * summed / total) - used
        pieces.append(((SIGNS[filling] if plain else "▰") * cells, COLOURS[filling]))
        used += cells
    pieces.append((("." if plain else "▱") * (width - used), Tone.QUIET.value))
    return Content.assemble(*pieces)


def ruler(report: ContextReport, width: int, *, plain: bool) -> Content:
    """The thresholds below the bar; where two would touch, the one that acts stays."""
    if not report.window:
        return Content("")
    mark = "^" if plain else "▴"
    wanted = [
        (report.compact_percent, f"{mark}{report.compact_percent} % summarizes", Tone.NEEDS_YOU),
        (FULL, f"{mark}{FULL}", Tone.BAD),
        (NOTICED, f"{mark}{NOTICED}", Tone.QUIET),
    ]
    row: list[tuple[int, str, Tone]] = []
    for percent, text, tone in wanted:
        start = min(percent * width // 100, width - 1)
        if percent > NEVER:
            continue
        if start + len(text) > width or (tone is Tone.NEEDS_YOU and any_in(FULL * width // 100, start, text)):
            text = text.partition(" ")[0]
        free = all(start >= at + len(other) + 1 or start + len(text) + 1 <= at for at, other, _ in row)
        if free and start + len(text) <= width:
            row.append((start, text, tone))
    line = Content("")
    for start, text, tone in sorted(row):
        line = Content.assemble(line, " " * (start - line.cell_length), (text, tone.value))
    return line


def legend(report: ContextReport, *, plain: bool) -> Content:
    """The meaning of each mark on the ruler; empty where there is no ruler."""
    if not report.window:
        return Content("")
    mark = "^" if plain else "▴"
    meanings = {NOTICED: "tells you", FULL: "turns red", report.compact_percent: "summarizes older messages"}
    said = [f"{mark}{percent} {words}" for percent, words in sorted(meanings.items()) if percent <= NEVER]
    return Content.styled(" · ".join(said), Tone.QUIET.value)


def any_in(cell: int, start: int, text: str) -> bool:
    return start < cell <= start + len(text)


def share_rows(report: ContextReport, *, plain: bool) -> list[Content]:
    """Contents of the window, one row each, and the free part; empty shares are left out."""
    rows = [
        share_row(filling.value, SIGNS[filling] if plain else "▰", COLOURS[filling], count, report.window, about="~")
        for filling, count in report.measured.shares
        if count > 0
    ]
    if report.window:
        left = max(report.window - report.tokens, 0)
        about = "~" if report.estimated else ""
        rows.append(share_row(FREE, "." if plain else "▱", Tone.QUIET.value, left, report.window, about=about))
    return rows


def fold_columns(rows: Sequence[Content], width: int) -> list[Content]:
    """The same rows in two columns, where they fit."""
    if width < 2 * SHARE + 2:
        return list(rows)
    half = (len(rows) + 1) // 2
    return beside(rows[:half], rows[half:], min(width // 2, SHARE + 10))


def share_row(name: str, sign: str, colour: str, count: int, window: int, *, about: str) -> Content:
    return Content.assemble(
        (f"{sign} ", colour), f"{name:<{NAME_WIDTH}}", f"{about + tokens(count):>7}", f"{share_of(count, window):>6}"
    )


def share_of(count: int, window: int) -> str:
    if not window:
        return ""
    percent = 100 * count / window
    return f"{percent:.0f} %" if percent >= 1 or not count else "<1 %"


def beside(left: Sequence[Content], right: Sequence[Content], left_width: int) -> list[Content]:
    rows: list[Content] = []
    for place in range(max(len(left), len(right))):
        first = left[place] if place < len(left) else Content("")
        second = right[place] if place < len(right) else Content("")
        rows.append(Content.assemble(first, " " * max(left_width - first.cell_length, 1), second))
    return rows


COMPACT: Final = "compact"
"""Result of the sheet when older messages are to be summarized; else the seq to go to, as `#12`."""
WIDE: Final = 112
"""Columns from which the biggest parts are beside the shares."""
LEFT: Final = SHARE + 6
LEAST_PARTS: Final = 3
KINDS: Final = {Filling.RESULTS: "result", Filling.IMAGES: "image", Filling.THINKING: "thought"}
KIND_WIDTH: Final = 7
OMITTED: Final[dict[OmissionKind, str]] = {
    OmissionKind.SHORTENED: "shortened",
    OmissionKind.CLEARED: "cleared",
    OmissionKind.IMAGE: "removed",
}


class ContextSheet(Sheet[str]):
    """Shows the context: Up and Down choose a part, letters act; it stays open and shows the results."""

    DEFAULT_CSS = """
    ContextSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS, sheet_take="go"), *bindings(Scope.CONTEXT)]

    def __init__(self, conversation: Conversation, *, plain: bool = False, said: str = "") -> None:
        super().__init__()
        self._conversation = conversation
        self._plain = plain
        self._report: ContextReport | None = None
        self._chosen = 0
        self._said = Content.styled(said, Tone.QUIET.value) if said else Content("")
        self._unsubscribe: Unsubscribe | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="context", markup=False)

    async def on_mount(self) -> None:
        self._draw()
        await self._measure()
        self._unsubscribe = await self._conversation.subscribe(self._follow)
        run_latest(self, self._conversation.context.count, "count")

    def on_unmount(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _follow(self, update: Update) -> None:
        if isinstance(update, ContextChanged | MessageSaved):
            run_latest(self, self._measure, "measure")

    async def _measure(self) -> None:
        self._report = await self._conversation.context.report()
        self._chosen = min(self._chosen, max(len(self._report.measured.parts) - 1, 0))
        self._draw()

    def action_move(self, by: int) -> None:
        parts = self._report.measured.parts if self._report else ()
        self._chosen = move_choice(self._chosen, by, len(parts))
        self._draw()

    def action_go(self) -> None:
        """Go to the message of the selected part; a result is shown with the call it answers, one message earlier."""
        if part := self._part():
            answers = part.filling is Filling.RESULTS or part.part >= 0
            self.dismiss(f"#{part.seq - answers}")

    def action_summarize(self) -> None:
        """Summarize older messages; the result appears in the conversation."""
        self.dismiss(COMPACT)

    def action_edit(self, what: str) -> None:
        """Change the window's contents, and report the tokens before and after."""
        active, part = self._conversation.context, self._part()
        edits: dict[str, Callable[[], Awaitable[Edited | Refused]]] = {
            "prune": active.prune,
            "strip_images": active.strip_images,
            "put_back": active.put_back,
            "undo": active.undo,
            "restore": active.restore,
        }
        if what == "part" and part is None:
            return
        if what == "part" and part is not None:
            again = part.omission is not None
            edits["part"] = lambda: active.put_back(part) if again else active.omit(part)
            what = "part" if not again else "put_back_part"
            edits[what] = edits["part"]
        run_latest(self, partial(self._edit, edits[what], WORDS[what]), "edit")

    async def _edit(self, edit: Callable[[], Awaitable[Edited | Refused]], words: str) -> None:
        outcome = await edit()
        if isinstance(outcome, Refused):
            self._said = Content.styled(outcome.reason, Tone.NEEDS_YOU.value)
        else:
            count = pluralize(outcome.count, "part")
            # The estimate cannot show the omission of a part hardly longer than its replacement.
            change = f": {outcome.before:,} → ~{outcome.after:,} tokens" if outcome.after != outcome.before else ""
            self._said = Content.styled(f"{words.format(count=count)}{change}.", Tone.GOOD.value)
        await self._measure()

    def action_threshold(self, by: int) -> None:
        """Summarize from an earlier or a later point on."""
        report, active = self._report, self._conversation.context
        if report is None or self._conversation.read_only:
            return

        async def move() -> None:
            await active.set_threshold(min(report.compact_percent, HIGHEST + STEP) + by * STEP)
            await self._measure()

        self.run_worker(move(), group="threshold")

    def _part(self) -> WindowPart | None:
        parts = self._report.measured.parts if self._report else ()
        return parts[self._chosen] if parts else None

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#context", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        report, width = self._report, self.measure
        if report is None:
            return [Content.assemble(("Context", "bold"), ("  measuring…", Tone.QUIET.value))]
        head = headline(report, short_model(self._conversation.record.model)).truncate(width, ellipsis=True)
        top = [head, bar(report, width, plain=self._plain), ruler(report, width, plain=self._plain)]
        below = [row.truncate(width, ellipsis=True) for row in self._notes(report)]
        below += [Content.styled(row, Tone.QUIET.value) for row in _wrap_words(self._keys(report), width)]
        is_wide, shares = width >= WIDE, share_rows(report, plain=self._plain)
        shares = shares if is_wide else fold_columns(shares, width)
        room = int(self.size.height * 0.92) - len(top) - len(below) - 3
        marks = legend(report, plain=self._plain).truncate(width, ellipsis=True)
        if marks.plain and room - len(shares) * (not is_wide) > LEAST_PARTS:
            top, room = [*top, marks], room - 1
        if is_wide:
            parts = self._parts(report, width - LEFT - 2, max(room, len(shares)))
            return [*top, *beside(shares, parts, LEFT + 2), Content(""), *below]
        parts = self._parts(report, width, max(room - len(shares), LEAST_PARTS))
        return [*top, *shares, *parts, *below]

    def _parts(self, report: ContextReport, width: int, room: int) -> list[Content]:
        """The biggest parts around the chosen one."""
        parts = report.measured.parts
        first = first_visible(self._chosen, len(parts), room)
        return [
            self._row(part, width, report.window, chosen=place == self._chosen)
            for place, part in enumerate(parts[first : first + room], start=first)
        ]

    def _row(self, part: WindowPart, width: int, window: int, *, chosen: bool) -> Content:
        left_out = OMITTED[part.omission] if part.omission else ""
        size = f"~{tokens(part.tokens)}" if not part.omission else f"~{tokens(part.whole)} → ~{tokens(part.tokens)}"
        right = f"{left_out}  {size:>8}{share_of(part.tokens, window):>6}".lstrip()
        mark = (">" if self._plain else "›") if chosen else " "
        kind = KINDS.get(part.filling, "you" if part.role is Role.USER else "agent")
        left = Content(f"{mark} #{part.seq:<4} {kind:<{KIND_WIDTH}} {clean_line(part.label)}")
        left = left.truncate(max(width - len(right) - 1, 1), ellipsis=True, pad=True)
        row = f"{left.plain} {right}"
        return Content.styled(row, "reverse" if chosen else Tone.QUIET.value if part.omission else "")

    def _notes(self, report: ContextReport) -> list[Content]:
        notes = [self._said] if self._said.plain else []
        if report.usage is not None:
            usage = report.usage
            counts = f"{usage.input_tokens:,} new, {usage.cache_read_tokens:,} cached, "
            counts += f"{usage.cache_creation_tokens:,} written, {usage.output_tokens:,} out"
            notes.append(Content.styled(f"Last request: {counts} · ~ is estimated", Tone.QUIET.value))
        if report.checkpoints is not None:
            notes.append(Content.styled(use_in_words(report.checkpoints), Tone.QUIET.value))
        notes += [Content.styled(line, Tone.QUIET.value) for line in compaction_lines(report.compactions)]
        if report.earlier is not None and (again := hint(("context_restore", "restores them"))):
            notes.append(Content.styled(f"Older messages are replaced by a summary; {again}.", Tone.QUIET.value))
        return notes

    def _keys(self, report: ContextReport) -> list[str]:
        compacts = f"summarizes {report.summarizable} messages, keeps {report.kept}"
        keys = [hint(("context_compact", compacts))] if report.summarizable else []
        if report.shortens or report.clears:
            does, count = ("shortens", report.shortens) if report.shortens else ("clears", report.clears)
            keys.append(hint(("context_prune", f"{does} {count} old {'result' if count == 1 else 'results'}")))
        if report.images:
            images = f"removes {report.images} {'image' if report.images == 1 else 'images'}"
            keys.append(hint(("context_images", images)))
        part = self._part()
        if part is not None and part.filling in {Filling.RESULTS, Filling.IMAGES}:
            keys.append(hint(("context_part", "restores it" if part.omission else "removes it")))
        if report.omitted:
            keys.append(hint(("context_put_back", "restores all")))
        at = "never" if report.compact_percent > NEVER else f"at {report.compact_percent} %"
        if report.can_undo:
            keys.append(hint(("context_undo", "undoes")))
        keys += [hint(("context_earlier context_later", f"auto-summarize {at}")), hint(("sheet_take", "jumps"))]
        return [one for one in keys if one]


WORDS: Final[dict[str, str]] = {
    "prune": "Shortened {count} for the model",
    "strip_images": "Removed {count} from what is sent",
    "part": "Removed {count} from what is sent",
    "put_back_part": "Restored {count}",
    "put_back": "Restored {count}",
    "undo": "Undid the last change ({count})",
    "restore": "Restored {count} in place of the summary",
}


def _wrap_words(words: list[str], width: int) -> list[str]:
    """Keys joined by dots, broken only between two of them."""
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} · {word}" if lines[-1] else word
        if len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


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
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            with VerticalScroll():
                yield Static(id="summary", markup=False)

    async def on_mount(self) -> None:
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
            self.app.push_screen(EditSheet("Edit the summary", self._summary.proposal.summary), self._take_text)

    def action_again(self) -> None:
        """Another one, with a hint."""
        if self._summary.waits:
            self.app.push_screen(LineSheet("What matters most? Empty: no change"), self._take_hint)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_close(self) -> None:
        """Drop the summary, or stop the model that writes it."""
        self._asked = False  # its end must not close the sheet again
        if not self._summary.waits:
            self._summary.stop()
        self.dismiss(None)

    def _take_text(self, text: str | None) -> None:
        if text is not None and text.strip():
            self._decide(TakeSummary(text))

    def _take_hint(self, hint: str | None) -> None:
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
