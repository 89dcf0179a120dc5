"""The real program in which Ctrl+Q stops the event loop for good: `python -m tests.support.stuck_child ...`.

`STUCK` in the environment says how: `python` a loop in a handler, `regex` a call in C that keeps the interpreter's
lock, `lock` one that gives it away. A handler that calls itself: `later` through its own queue, `twice` two times each,
`next` behind the message, `turns` two widgets that call each other, `refresh` after the next frame.
`eats` and `eats-in-c` take more memory than the 200 MB that are allowed.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import Any

from phoenix_tui.__main__ import main

MOST_EATEN = 600
"""Megabytes: a bound, whatever happens to the watch."""
SOME_EATEN = 155
"""With what Phoenix has anyway above 200, which are allowed, and below the 250 at which the zygote kills."""


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
            eaten = [b"x" * (1 << 20) for _ in range(SOME_EATEN)]
            while eaten:
                pass
        case "eats-in-c":
            eaten = [b"x" * (1 << 20) for _ in range(MOST_EATEN)]
            re.match(r"(a+)+$", "a" * 64 + "b")
        case _:
            raise ValueError(how)


def leave(self: Any) -> None:
    """In the place of `PhoenixApp.action_leave`."""
    match how := os.environ["STUCK"]:
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


def run() -> int:
    """Phoenix with that change."""
    from phoenix_tui import memory  # noqa: PLC0415 - as below

    if os.environ["STUCK"].startswith("eats"):
        setattr(memory, "LEAST", 200 << 20)  # noqa: B010 - a constant, smaller for this child alone
        setattr(memory, "MOST", 200 << 20)  # noqa: B010 - as above
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
