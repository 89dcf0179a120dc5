"""A question beside the conversation, and its answer once it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from textual.content import Content

from phoenix_tui.engine_errors import ENGINE_ERRORS
from phoenix_tui.labels import Tone
from phoenix_tui.screens.text_sheet import TextSheet
from tools.clean import clean, clean_line
from tools.wording import one_line

WAITS: Final = "thinking… closing this drops the question"
SHOWN: Final = 200
"""Characters of the question that are shown."""


class SideQuestionSheet(TextSheet):
    """Asks when it opens; closing it ends the request. Neither question nor answer is stored."""

    def __init__(self, question: str, ask: Callable[[str], Awaitable[str]]) -> None:
        super().__init__(one_line(clean_line(question), SHOWN), Content.styled(WAITS, Tone.QUIET.value))
        self._question = question
        self._ask = ask

    def on_mount(self) -> None:
        """Ask."""
        self.run_worker(self._answer(), group="side")

    async def _answer(self) -> None:
        try:
            answer, tone = clean(await self._ask(self._question)).strip() or "(no answer)", ""
        except ENGINE_ERRORS as error:
            answer, tone = clean(str(error)), Tone.BAD.value
        self.fill(Content.styled(answer, tone))
