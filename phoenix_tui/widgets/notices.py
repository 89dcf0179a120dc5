"""The notice above the composer: an error with its way out, a read-only conversation, a warning that stays."""

from __future__ import annotations

from typing import ClassVar, Protocol

from msgspec import Struct
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.text.labels import Tone
from tools.clean import clean


class Notifier(Protocol):
    """Shows passing notices."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Show a toast; the text may come from outside."""
        ...


class DockNotice(Struct, frozen=True):
    """Words that stay until they are no longer true."""

    text: str
    tone: Tone
    remedy: str = ""
    """Remedy for the user."""


class NoticeBar(Widget):
    """One notice with a bar in its colour; not shown when there is none."""

    MOST_ROWS: ClassVar[int] = 6
    DEFAULT_CSS = """
    NoticeBar {
        height: auto; max-height: 6; padding: 0 1; display: none; border-left: heavy $error;
        &.-mild { border-left: heavy $warning; }
    }
    """
    shown: reactive[DockNotice | None] = reactive(None, layout=True)
    """Set by the screen."""

    def watch_shown(self, shown: DockNotice | None) -> None:
        self.display = shown is not None
        self.set_class(shown is not None and shown.tone is not Tone.BAD, "-mild")

    def render(self) -> Content:
        shown = self.shown
        if shown is None:
            return Content("")
        return Content.assemble(
            (clean(shown.text), shown.tone.value),
            (f"\n{shown.remedy}" if shown.remedy else "", Tone.QUIET.value),
        )
