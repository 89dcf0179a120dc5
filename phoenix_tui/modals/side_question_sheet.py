"""A question beside the conversation, and its answer once it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from engine.api.conversation import SideQuestionsApi
from engine.records import SideExchange
from phoenix_tui.features.side_questions import answer_of, in_one_line
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.markdown_rows import markdown_rows

WAITS: Final = "thinking… closing this cancels the question"


class SideQuestionSheet(TextSheet):
    """Asks when it opens, unless the answer is given; closing it ends the request. Nothing is stored."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.SIDE), *bindings(Scope.READING)]

    def __init__(
        self, question: str, side: SideQuestionsApi, earlier: Sequence[SideExchange] = (), answered: str = ""
    ) -> None:
        super().__init__(in_one_line(question), Content.styled(WAITS, Tone.QUIET.value), at_end=bool(earlier))
        self._question = question
        self._side = side
        self._earlier = tuple(earlier)
        self._answered = answered
        self.wanted = ""
        """Action that closed it: copy, fork or more; empty where it was only closed."""

    @property
    def exchange(self) -> SideExchange:
        """The question and its answer."""
        return SideExchange(self._question, self._answered)

    def on_mount(self) -> None:
        """Ask."""
        if not self._answered:
            self.run_worker(self._answer(), group="side")

    async def _answer(self) -> None:
        answer = await answer_of(self._side, self._question, self._earlier)
        if answer.failed:
            self.fill(Content.styled(answer.text, Tone.BAD.value))
            return
        self._answered = answer.text
        self.on_resize()

    def rows(self, width: int) -> Sequence[Content]:
        """Earlier questions, the answer's Markdown once it is there, and the keys that take it further."""
        rows: list[Content] = []
        for one in self._earlier:
            rows += [*Content.styled(in_one_line(one.question), "bold").wrap(width), *markdown_rows(one.answer, width)]
            rows.append(Content(""))
        if self._earlier:
            rows += Content.styled(in_one_line(self._question), "bold").wrap(width)
        if not self._answered:
            return [*rows, *super().rows(width)]
        keys = hint(("side_copy", "copies"), ("side_more", "asks on"), ("side_fork", "continues in a copy"))
        return [*rows, *markdown_rows(self._answered, width), Content(""), Content.styled(keys, Tone.QUIET.value)]

    def action_want(self, action: str) -> None:
        """Close it for an action on the answer; nothing happens before that is there."""
        if self._answered:
            self.wanted = action
            self.dismiss(None)
