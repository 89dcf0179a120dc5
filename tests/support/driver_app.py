"""A tiny app on the real driver for pty tests: writes what it receives to the file named by its first argument.

Run as `python -m tests.support.driver_app LOG [MODE]`.
"""

from __future__ import annotations

from phoenix_tui.terminal import state

state.make_raw_early()

import asyncio  # noqa: E402 - raw mode comes first, as in the real entry
import atexit  # noqa: E402 - as above
import os  # noqa: E402 - as above
import signal  # noqa: E402 - as above
import sys  # noqa: E402 - as above
from pathlib import Path  # noqa: E402 - as above

os.environ.setdefault("ESCDELAY", "40")
os.environ.setdefault("TEXTUAL_FPS", "240")

from rich.segment import Segment  # noqa: E402 - as above
from textual import events  # noqa: E402 - as above
from textual.app import App, ComposeResult  # noqa: E402 - as above
from textual.strip import Strip  # noqa: E402 - as above
from textual.widget import Widget  # noqa: E402 - as above

from phoenix_tui.terminal.driver import QuietDriver  # noqa: E402 - as above

HOSTILE = "safe\x1b]52;c;aGFjaw==\x07\x1b]0;title\x07\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\\x1b[2t\x1bPq\x1b\\\x1b_Gx\x1b\\\x9b5nend"


class Hostile(Widget):
    """Puts uncleaned text on the screen."""

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(HOSTILE if y == 0 else " ")], self.size.width)


class Counting(Widget):
    """Fills the screen anew with every count, until a key comes."""

    count = 0

    def render_line(self, y: int) -> Strip:
        text = f"{'stopped at' if self.disabled else 'row'} {self.count + y} "
        return Strip([Segment((text * 20)[: self.size.width])])


class DriverApp(App[None]):
    """Logs keys, pastes and how it came back from a stop."""

    def __init__(self, log: Path, mode: str) -> None:
        super().__init__(driver_class=QuietDriver)
        self.log_path = log
        self.mode = mode

    def compose(self) -> ComposeResult:
        if self.mode == "hostile":
            yield Hostile()
        if self.mode == "counting":
            yield Counting()

    def note(self, text: str) -> None:
        with self.log_path.open("a") as log:
            log.write(text + "\n")

    def on_ready(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        if self.mode == "busy":
            self.set_interval(0.005, self.write_much)
        if self.mode == "counting":
            self.set_interval(0.01, self.count)
        self.app_resume_signal.subscribe(self, lambda _: self.note("resumed"))
        self.note("ready")

    def count(self) -> None:
        counting = self.query_one(Counting)
        if not counting.disabled:
            counting.count += 1
            counting.refresh()
            self.note(f"count {counting.count}")

    def write_much(self) -> None:
        driver = self._driver
        assert driver is not None
        for _ in range(300):
            driver.write("\x1b[0m")

    def on_key(self, event: events.Key) -> None:
        self.note(f"key {event.key}")
        for counting in self.query(Counting):
            counting.disabled = True
        if event.key == "f9":
            raise RuntimeError("on purpose")
        if event.key == "f10":
            self.exit()

    def on_paste(self, event: events.Paste) -> None:
        self.note(f"paste {event.text!r}")

    async def action_quit(self) -> None:
        """Ctrl+Q is a key like any other here."""


if __name__ == "__main__":
    atexit.register(state.restore)
    DriverApp(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "").run()
