"""The permission rules that hold here: seen with where and since when, edited, taken back, written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.executor.requests import EngineError
from engine.rule_store import OF_FILE, ActiveRule
from phoenix_tui.features.agents import UNTITLED
from phoenix_tui.features.permissions import RuleChanges, RulePlaces
from phoenix_tui.keys.active_keys import BACK, CLOSES, hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone, age, short_path
from phoenix_tui.text.request_text import one_line
from phoenix_tui.widgets.bases import first_visible_line, move_choice
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.rule_store import RuleStore

BESIDE: Final = 12
"""Cells of a row for its sign and its age."""
LONGEST: Final = 400
"""Characters of a rule that are shown whole."""
EVERYWHERE: Final = "Everywhere, in every project (rules.toml)"
NONE_YET: Final = "No rules yet. Answering a question with a adds one to its project, with s to its conversation."


def rows_of(
    rules: Sequence[ActiveRule], chosen: int, width: int, room: int, now: float, trouble: str, active: RuleStore
) -> list[Content]:
    """Heading, faults, and as many rules as there is room for, the chosen one among them."""
    head = Content.assemble(
        ("What runs without asking", "bold"), (f"   {pluralize(len(rules), 'rule')}", Tone.QUIET.value)
    )
    lines = [head.truncate(width, ellipsis=True)]
    if trouble:
        lines += Content.styled(clean_line(trouble), Tone.NEEDS_YOU.value).wrap(width)
    if not rules:
        return [*lines, *Content.styled(NONE_YET, Tone.QUIET.value).wrap(width)]
    body: list[Content] = []
    first = last = 0
    for place, rule in enumerate(rules):
        if begins := place == 0 or rules[place - 1].place != rule.place:
            body.append(Content.styled(_where(rule), f"bold {Tone.YOU.value}").truncate(width, ellipsis=True))
        if place == chosen:
            first, last = len(body) - begins, len(body) + 1
        body.append(_row(rule, width, now, chosen=place == chosen, bad=bool(active.problem(rule.text))))
    top = first_visible_line(first, last, len(body), room)
    return [*lines, *body[top : top + room]]


def remark(text: str, rules: RuleStore, width: int, *, writing: bool) -> Content:
    """Effect of a rule, or the reason why it is invalid; before it the whole of one whose row is cut."""
    if not text.strip():
        return Content("")
    if why := rules.problem(text.strip()):
        return Content.styled(why if writing else f"Not applied: {why}", Tone.BAD.value)
    effect = Content.styled(rules.effect(text.strip()), Tone.QUIET.value)
    whole = one_line(text)
    is_cut = not writing and Content(whole).cell_length > width - BESIDE
    return Content.assemble(whole[:LONGEST], "\n", effect) if is_cut else effect


def _where(rule: ActiveRule) -> str:
    if rule.conversation_id:
        return f"Only in “{one_line(rule.title) or UNTITLED}”"
    if rule.file:
        return f"In {one_line(short_path(Path(rule.file)))}, to be changed there"
    return f"In the project {one_line(short_path(Path(rule.project)))}" if rule.project else EVERYWHERE


def _row(rule: ActiveRule, width: int, now: float, *, chosen: bool, bad: bool) -> Content:
    since = Content.styled(f"  {age(now - rule.since)} ago" if rule.since else "", Tone.QUIET.value)
    room = max(width - since.cell_length - 2, 1)
    words = Content(one_line(rule.text)).truncate(room, ellipsis=True, pad=True)
    line = Content.assemble("› " if chosen else "  ", words.stylize(Tone.BAD.value) if bad else words, since)
    return Content.styled(line.plain, "reverse") if chosen else line


SHARE: Final = 0.85
"""Share of the rows of the screen that the sheet may take."""
AROUND: Final = 10
"""Rows of the sheet beside the rules: rule, heading, remark (2), line, its effect (2), keys, margin."""


class RulesSheet(Sheet[None]):
    """Stays open over its changes; each can be undone while it is."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    RulesSheet {
        & > .sheet { max-height: 85%; }
        & Static { height: auto; }
        & LineInput { margin: 0 0 0 2; background: $background; display: none; }
        & #remark { padding: 0 0 0 2; margin: 1 0 0 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS, sheet_take="write"), *bindings(Scope.RULES)]

    def __init__(self, rules: RuleStore, places: RulePlaces) -> None:
        super().__init__()
        self._rules = rules
        self._places = places
        self.clock: Clock = SYSTEM_CLOCK
        self._found: tuple[ActiveRule, ...] = ()
        self._chosen = 0
        self._changes = RuleChanges(rules, hint(("rule_undo", "restores it")))
        self._edited: ActiveRule | None = None
        """The rule in the line; None for a new one."""
        self._said = Content("")

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="rows", markup=False)
            yield LineInput(placeholder="tool(pattern), such as bash(make test*), or deny tool(pattern)")
            yield Static(id="remark", markup=False)
            yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Read, and again each second: another Phoenix may change them."""
        self._look()
        self.set_interval(1.0, self._look)

    @property
    def _writing(self) -> bool:
        return self.query_one(LineInput).display

    @property
    def _row(self) -> ActiveRule | None:
        return self._found[self._chosen] if self._found else None

    def _look(self) -> None:
        before = self._row
        self._found = self._rules.all(self._places.folder)
        same = [place for place, one in enumerate(self._found) if before is not None and one == before]
        self._chosen = same[0] if same else max(min(self._chosen, len(self._found) - 1), 0)
        self._draw()

    def _draw(self) -> None:
        width = self.measure
        room = max(int(self.size.height * SHARE) - AROUND, 3)
        trouble = " ".join(part for part in (self._rules.trouble(), self._places.note) if part)
        rows = rows_of(self._found, self._chosen, width, room, self.clock.now(), trouble, self._rules)
        self.query_one("#rows", Static).update(Content("\n").join(rows))
        text = self.query_one(LineInput).text if self._writing else self._row.text if self._row else ""
        said = remark(text, self._rules, width, writing=self._writing)
        self.query_one("#remark", Static).update(self._said if self._said and not self._writing else said)
        keys = Content.styled(self._keys(), Tone.QUIET.value).truncate(width, ellipsis=True)
        self.query_one("#keys", Static).update(keys)
        self.show_esc_hint(BACK if self._writing else CLOSES)

    def _keys(self) -> str:
        if self._writing and self._edited is None:
            here = (("rule_here", "only this conversation"),) if self._places.conversation_id else ()
            return hint("Enter adds it to this project", ("rule_everywhere", "everywhere"), *here)
        if self._writing:
            return "Enter saves"
        row = self._row
        keys = [("rule_new", "adds one"), ("rule_undo", "undoes")]
        if row is not None and not row.file:
            moves = ("rule_move", "for all projects" if row.project else "for this project only")
            keys[:0] = [("sheet_take", "edits"), ("rule_remove", "removes"), *(() if row.conversation_id else (moves,))]
        return hint(*keys)

    def action_move(self, by: int) -> None:
        if self._found and not self._writing:
            self._chosen = move_choice(self._chosen, by, len(self._found))
            self._said = Content("")
            self._draw()

    def action_write(self, new: bool = False) -> None:
        """The chosen rule into the line, or a new one; the letters behind this key are the line's already."""
        if self._writing:
            raise SkipAction
        rule = None if new else self._row
        if rule is not None and rule.file:
            self._said = Content.styled(OF_FILE.format(file=clean_line(rule.file)), Tone.BAD.value)
            self._draw()
        elif rule is not None or new:
            line = self.query_one(LineInput)
            self._edited, self._said = rule, Content("")
            line.display = True
            line.fill(rule.text if rule is not None else "")
            self.set_focus(line)
            self._draw()

    def action_remove(self) -> None:
        """Take the chosen one back."""
        if (rule := self._row) is not None:
            self._do(lambda: self._changes.remove(rule))

    def action_shift(self) -> None:
        """Move a rule from this project to everywhere, or back."""
        if (rule := self._row) is not None and not self._writing:
            self._do(lambda: self._changes.move(rule, self._places.project))

    def action_undo(self) -> None:
        """Turn the last change around."""
        self._do(self._changes.undo)

    def action_here(self) -> None:
        """Tab in a new rule: for this conversation alone."""
        if not self._writing:
            raise SkipAction
        line = self.query_one(LineInput)
        if self._edited is None and self._places.conversation_id:
            # After the letters typed before it.
            line.call_later(lambda: self._keep(line.text, ActiveRule("", self._places.conversation_id)))

    def action_everywhere(self) -> None:
        """Keep a new rule in every project."""
        if not self._writing:
            raise SkipAction
        line = self.query_one(LineInput)
        if self._edited is None:
            line.call_later(lambda: self._keep(line.text, ActiveRule("")))

    def action_close(self) -> None:
        """Close the line, else the sheet."""
        if self._writing:
            self._stop_writing()
            self._draw()
        else:
            self.dismiss(None)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Show the effect of the text."""
        event.stop()
        self._draw()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Keep the rule in this project, or in the scope of the edited one."""
        event.stop()
        self._keep(event.text, ActiveRule("", project=self._places.project))

    def _keep(self, text: str, new: ActiveRule) -> None:
        """A rule that can match something; another one stays in its line with the reason below it."""
        text, old = text.strip(), self._edited
        if old is not None and text in {old.text, clean_line(old.text).strip()}:
            self.action_close()  # unchanged, even if a line cannot show it exactly
        elif not self._rules.problem(text):
            kept_as = replace(old or new, text=text)
            self._do(lambda: self._changes.keep(old, kept_as))
            found = enumerate(self._found)
            kept = [place for place, one in found if (one.text, one.place) == (text, kept_as.place)]
            self._chosen = kept[0] if kept else self._chosen
            self._draw()

    def _do(self, change: Callable[[], str]) -> None:
        """Carry it out and report the result, or the reason of a failure."""
        self._stop_writing()
        try:
            self._said = Content.styled(change(), Tone.GOOD.value)
        except EngineError as error:
            self._said = Content.styled(str(error), Tone.BAD.value)
        self._look()

    def _stop_writing(self) -> None:
        self.query_one(LineInput).display = False
        self._edited = None
        self.set_focus(None)
