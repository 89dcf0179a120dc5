"""A longer text to change over the workspace: a queued message, a large paste."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.workspace.external_editor import edit_outside
from tools.clean import clean

LEAVES: Final = "Esc cancels"
DROPS: Final = "Esc discards the changes"
EDIT_UP_TO: Final = 500_000
"""Characters up to which it is changed here; 10 MB would hold the screen for seconds. Of more the ends are shown."""
END_SHOWN: Final = 20_000
WRAP_UP_TO: Final = 200_000
"""Characters up to which long lines are wrapped; wrapping megabytes would freeze the screen."""


class EditSheet(Sheet[str]):
    """Gives the changed text, None where it is left as it was."""

    DEFAULT_CSS = """
    EditSheet {
        & Static { height: auto; }
        & TextArea {
            height: auto; min-height: 3; max-height: 50vh; border: none; padding: 0; background: $background;
            scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.PASTE)
    esc_hint = LEAVES

    def __init__(self, heading: str, text: str, *, may_be_file: bool = False) -> None:
        super().__init__()
        self._heading = heading
        self._may_be_file = may_be_file
        self.wants_file = False
        """True when the text is to become a file that the message names."""
        self._whole = text
        self._is_large = len(text) > EDIT_UP_TO
        self._text = _ends(text) if self._is_large else text
        self._asked = False

    def compose(self) -> ComposeResult:
        """Heading and text."""
        with Vertical(classes="sheet"):
            yield Static(self._words(), markup=False)
            wrapped = len(self._text) <= WRAP_UP_TO
            area = TextArea(
                self._text, soft_wrap=wrapped, tab_behavior="indent", compact=True, read_only=self._is_large
            )
            area.cursor_blink = False
            area.highlight_cursor_line = False
            yield area

    def on_mount(self) -> None:
        """The text takes the keys."""
        area = self.query_one(TextArea)
        self.set_focus(area)
        if not self._is_large:
            area.move_cursor(area.document.end)

    def action_keep(self) -> None:
        """Return the present text."""
        self.dismiss(self._whole if self._is_large else clean(self.query_one(TextArea).text))

    def action_outside(self) -> None:
        """Continue in the user's own editor."""
        self.run_worker(self._write_outside(), group="outside")

    async def _write_outside(self) -> None:
        text = await edit_outside(self.app, self._whole if self._is_large else self.query_one(TextArea).text)
        if text is None:
            self.app.notify("The editor cannot be started; set VISUAL or EDITOR.", severity="error")
        else:
            self.dismiss(clean(text))

    def action_undo(self) -> None:
        """Take the last change back."""
        self.query_one(TextArea).action_undo()

    def action_close(self) -> None:
        """Leave it as it was; where something was changed, ask once."""
        if self.query_one(TextArea).text == self._text or self._asked:
            self.dismiss(None)
            return
        self._asked = True
        self.query_one(Static).update(self._words())
        self.show_esc_hint(DROPS)

    def action_to_file(self) -> None:
        """Replace the text by a file; possible for a paste only."""
        if self._may_be_file:
            self.wants_file = True
            self.action_keep()

    def on_text_area_changed(self) -> None:
        """Written on: asked again at the next Esc."""
        if self._asked:
            self._asked = False
            self.query_one(Static).update(self._words())
            self.show_esc_hint(LEAVES)

    def _words(self) -> Content:
        keeps = ("paste_editor", "opens your editor") if self._is_large else ("paste_keep", "saves")
        keys = hint(keeps, ("paste_file", "replaces it with a file") if self._may_be_file else "")
        sure = f"Changed: {hint(('paste_keep', 'saves'))}"
        words = (sure, Tone.NEEDS_YOU.value) if self._asked else (keys, Tone.QUIET.value)
        return Content.assemble((self._heading, "bold"), "\n", words)


def _ends(text: str) -> str:
    """The beginning and the end of a very long text, and how much is between."""
    left_out = len(text) - 2 * END_SHOWN
    return f"{text[:END_SHOWN]}\n\n[… {left_out:,} characters are not shown here …]\n\n{text[-END_SHOWN:]}"
