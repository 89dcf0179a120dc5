"""Slow start: a notice about its cause, and messages sent meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from phoenix_tui.keys.active_keys import hint
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.notices import DockNotice
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.lifecycle.launch import Launch
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.dock import Dock

PATIENCE: Final = 3.0
"""Seconds that opening the services may take before one wonders."""
SHOWN: Final = 60
"""Characters of a sent message that are shown."""
WORDS: Final = "Still starting; the machine is slow, or another program is using the database."
KEPT: Final = "Messages are sent when this is done."


class SlowStart:
    """State of a start from the first frame until the services are open."""

    def __init__(self, screen: PhoenixScreen[None], launch: Launch, dock: Dock) -> None:
        self._launch = launch
        self._composer, self._notice = dock.composer, dock.notice
        self._said: DockNotice | None = None
        self.sent: list[str] = []
        """Messages and commands that wait, in order."""
        self._timer = screen.set_timer(PATIENCE, self.show)

    def show(self) -> None:
        line = clean_line(" ".join(self.sent[-1].split())) if self.sent else ""
        sent = f" “{line[:SHOWN]}{'…' * (len(line) > SHOWN)}”" if line else ""
        self._said = DockNotice(WORDS, Tone.NEEDS_YOU, f"{KEPT}{sent} · {hint(('quit', 'quits'))}")
        self._notice.shown = self._said

    def send(self, text: str) -> None:
        self.sent.append(text)
        if self._said is not None:
            self.show()

    def keep(self) -> None:
        """Phoenix is left before they are there: Up finds the words at the next start."""
        from phoenix_tui.features.composing import PromptHistory  # noqa: PLC0415 - not for the first frame

        history = PromptHistory(self._launch.state_folder, self._launch.cwd)
        for text in (*self.sent, self._composer.content):
            with suppress(OSError):  # no other action is possible for them
                history.add(text)

    def over(self) -> None:
        self._timer.stop()
        if self._notice.shown is self._said:
            self._notice.shown = None
