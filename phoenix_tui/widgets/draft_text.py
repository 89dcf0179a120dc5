"""The text in a composer, its long pastes unfolded, and the older prompts that can take its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import TextArea

from phoenix_tui.widgets.answer_keys import Answering
from phoenix_tui.widgets.pasting import PasteStore
from phoenix_tui.widgets.readline import replace_at

if TYPE_CHECKING:
    from phoenix_tui.features.prompt_history import PromptHistory


class DraftText:
    """Reads and replaces the whole text of one text area."""

    def __init__(self, area: TextArea, bulk: PasteStore, answering: Answering) -> None:
        self._area = area
        self._bulk = bulk
        self._answering = answering
        self.prompts: PromptHistory | None = None
        """Older prompts of this folder; None until the services are open."""

    @property
    def content(self) -> str:
        """The whole text, with every folded paste in its place."""
        return self._bulk.unfold(self._area.text)

    def put(self, text: str) -> None:
        """Show another text in place of the draft; undo brings the draft back."""
        self._answering.begin(by_hand=False)
        replace_at(self._area, self._bulk.fold(text), (0, 0), self._area.document.end)

    def walk(self, by: int) -> None:
        """Show an older prompt (-1), or a newer one (1)."""
        prompts = self.prompts
        text = None if prompts is None else prompts.older(self.content) if by < 0 else prompts.newer()
        if text is not None:
            self.put(text)

    def leave_prompts(self) -> None:
        """Begin at the newest prompt again."""
        if self.prompts is not None:
            self.prompts.leave()
