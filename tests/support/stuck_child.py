"""The real program in which Ctrl+Q or SIGUSR1 stops the event loop for good: `python -m tests.support.stuck_child ...`.

`STUCK` in the environment says how: `python` a loop in a handler, `regex` a call in C that keeps the interpreter's
lock, `lock` one that gives it away. A handler that calls itself: `later` through its own queue, `twice` two times each,
`next` behind the message, `turns` two widgets that call each other, `refresh` after the next frame.
`eats` and `eats-in-c` take more memory than the `LIMIT` that is allowed. With `BALLAST`, the name of a file, the
program occupies as many MB as stand in it, from its start on and whenever that changes.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from phoenix_tui.__main__ import main
from phoenix_tui.lifecycle.watchdogs import resident

MEGABYTE: Final = 1 << 20
LIMIT: Final = {"PHOENIX_MEMORY_LIMIT": "256"}
MOST_EATEN: Final = 600
"""Megabytes: a bound, whatever happens to the watch."""
SOME_EATEN: Final = 290
"""Megabytes above `LIMIT` and below the 320 at which the zygote kills."""
LOOK: Final = 0.02
STANDING: Final = "standing"
"""File in the home folder that shows that the loop is blocked."""


class Ballast:
    """Makes the program occupy as much memory as a file says."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held = b""
        self._take()
        threading.Thread(target=self._follow, daemon=True).start()

    def _take(self) -> None:
        wanted = int(self._file.read_text() or 0) * MEGABYTE
        more = wanted - resident() + len(self._held)
        if abs(more - len(self._held)) > MEGABYTE:
            self._held = b""
            self._held = b"x" * max(0, more)

    def _follow(self) -> None:
        stood = self._file.stat().st_mtime_ns
        while not threading.Event().wait(LOOK):
            if (now := self._file.stat().st_mtime_ns) != stood:
                stood = now
                self._take()


def stand(how: str) -> None:
    """Do not come back, or only for the next message."""
    match how:
        case "python":
            while True:
                pass
        case "regex":
            re.match(r"(a+)+$", "a" * 64 + "b")
        case "lock":
            threading.Event().wait(600)
        case "eats":
            eaten = b"x" * (SOME_EATEN * MEGABYTE - resident())
            while eaten:
                pass
        case "eats-in-c":
            eaten = b"x" * (MOST_EATEN * MEGABYTE)
            re.match(r"(a+)+$", "a" * 64 + "b")
        case _:
            raise ValueError(how)


def leave(self: Any) -> None:
    """Replacement of `PhoenixApp.action_leave`."""
    match how := os.environ.get("STUCK", ""):
        case "later":
            self.call_later(self.action_leave)
        case "twice":
            self.call_later(self.action_leave)
            self.call_later(self.action_leave)
        case "next":
            self.call_next(self.action_leave)
        case "turns":
            self.screen.call_later(self.call_later, self.action_leave)
        case "refresh":
            self.screen.refresh(layout=True)
            self.call_after_refresh(self.action_leave)
        case _:
            stand(how)


def stand_on_signal() -> None:
    """SIGUSR1 stops the loop as well, in whatever front end; `STANDING` says so."""

    def stop(_number: int, _frame: object) -> None:
        (Path(os.environ["HOME"]) / STANDING).touch()
        stand(os.environ["STUCK"])

    signal.signal(signal.SIGUSR1, stop)


def run() -> int:
    """Phoenix with that change."""
    if file := os.environ.get("BALLAST"):
        Ballast(Path(file))
    if "STUCK" not in os.environ:
        return main()
    stand_on_signal()
    import phoenix_tui.wiring.screen as wiring  # noqa: PLC0415 - after the terminal is raw, as in the real entry

    show: Any = getattr(wiring, "_show")  # noqa: B009 - private, and patched for this child alone

    def show_stuck(*arguments: Any) -> int:
        from phoenix_tui.app import PhoenixApp  # noqa: PLC0415 - as above

        setattr(PhoenixApp, "action_leave", leave)  # noqa: B010 - as above
        return int(show(*arguments))

    setattr(wiring, "_show", show_stuck)  # noqa: B010 - as above
    return main()


if __name__ == "__main__":
    sys.exit(run())
