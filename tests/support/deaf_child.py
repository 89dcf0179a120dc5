"""The real program in which, from F13 on, each key of the composer fails, and so do quitting and Ctrl+C:
`python -m tests.support.deaf_child ...`.
"""

from __future__ import annotations

import sys
from typing import Any

from phoenix_tui.__main__ import main
from tests.support.faulty_child import fail


def plant(screen: Any) -> None:
    """Let all of it fail."""

    async def fail_to_leave() -> None:
        fail("leaving")

    async def fail_at_key(_: Any, __: Any) -> None:
        fail("a key")

    setattr(type(screen.parts.dock.composer), "_on_key", fail_at_key)  # noqa: B010 - private, and patched here alone
    screen.startup.leave = fail_to_leave
    screen.escape_handler.interrupt = lambda: fail("Ctrl+C")
    screen.toasts.tell("keys fail from now on")


def run() -> int:
    """Phoenix with that key."""
    import phoenix_tui.wiring.screen as wiring  # noqa: PLC0415 - after the terminal is raw, as in the real entry

    show: Any = getattr(wiring, "_show")  # noqa: B009 - private, and patched for this child alone

    def show_deaf(*arguments: Any) -> int:
        from phoenix_tui.workspace.screen import WorkspaceScreen  # noqa: PLC0415 - as above

        def key_in_workspace(self: Any, event: Any) -> None:
            if event.key == "f13":
                plant(self)

        setattr(WorkspaceScreen, "on_key", key_in_workspace)  # noqa: B010 - as above
        return int(show(*arguments))

    setattr(wiring, "_show", show_deaf)  # noqa: B010 - as above
    return main()


if __name__ == "__main__":
    sys.exit(run())
