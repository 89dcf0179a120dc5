"""The real program in which Ctrl+Q stops the event loop for good: `python -m tests.support.stuck_child ...`.

`STUCK` in the environment says how: `python` a loop in a handler, `regex` a call in C that keeps the interpreter's
lock, `lock` one that gives it away, `messages` a handler that sends itself its own message.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import Any

from phoenix_tui.__main__ import main


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
        case _:
            raise ValueError(how)


def leave(self: Any) -> None:
    """In the place of `PhoenixApp.action_leave`."""
    how = os.environ["STUCK"]
    if how == "messages":
        self.call_later(self.action_leave)
    else:
        stand(how)


def run() -> int:
    """Phoenix with that change."""
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
