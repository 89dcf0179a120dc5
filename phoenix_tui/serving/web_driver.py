"""Textual's driver for a browser, with the filters that a terminal gets; each tab is a Phoenix of its own."""

from __future__ import annotations

import os
import signal

from textual.drivers.web_driver import WebDriver

from phoenix_tui.terminal_output import drawing_only


class QuietWebDriver(WebDriver):
    """Only what draws goes out; a tab or a server that is gone ends Phoenix as a hang-up would."""

    def write(self, data: str) -> None:
        """Write what draws; nothing else passes."""
        super().write(drawing_only(data))

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """What the server says: a closed tab keeps its draft and stops its runs before the end."""
        if packet_type == "quit":
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read until the end; one that nobody asked for means that the server has died."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
