"""A question beside the conversation, and its answer once it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from engine.api.conversation import SideQuestionsApi
from phoenix_tui.features.side_questions import answer_of, in_one_line
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.markdown_rows import markdown_rows

WAITS: Final = "thinking… closing this cancels the question"


class SideQuestionSheet(TextSheet):
    """Asks when it opens; closing it ends the request. Neither question nor answer is stored."""

    def __init__(self, question: str, side: SideQuestionsApi) -> None:
        super().__init__(in_one_line(question), Content.styled(WAITS, Tone.QUIET.value))
        self._question = question
        self._side = side
        self._answered = ""

    def on_mount(self) -> None:
        """Ask."""
        self.run_worker(self._answer(), group="side")

    async def _answer(self) -> None:
        answer = await answer_of(self._side.ask, self._question)
        if answer.failed:
            self.fill(Content.styled(answer.text, Tone.BAD.value))
            return
        self._answered = answer.text
        self.on_resize()

    def rows(self, width: int) -> Sequence[Content]:
        """The answer's Markdown, once it is there."""
        return markdown_rows(self._answered, width) if self._answered else super().rows(width)
