"""The real program with faults behind the function keys F13 to F20: `python -m tests.support.faulty_child ...`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from phoenix_tui.__main__ import main

KEY: Final = "sk-ant-planted-0123456789"


def fail(where: str) -> None:
    """Raise a fault, with a key among its words."""
    raise RuntimeError(f"planted in {where} with {KEY}")


async def fail_later(where: str) -> None:
    """Raise it in a worker."""
    fail(where)


def fail_once(owner: Any, name: str, where: str) -> None:
    """Let the next call of this method fail."""
    real = getattr(owner, name)

    def failing(*_: object, **__: object) -> None:
        setattr(owner, name, real)
        fail(where)

    setattr(owner, name, failing)


def begin_ticks(screen: Any) -> None:
    """Let a clock of the workspace fail at each tick."""
    screen.set_interval(0.02, partial(fail, "a timer"))


def begin_callbacks(screen: Any) -> None:
    """Let a callback behind the next frame fail, and the one after it write into the draft."""
    screen.call_after_refresh(fail, "a callback")
    screen.call_after_refresh(screen.parts.dock.composer.insert, "ft")
    screen.refresh()


def paint_once(screen: Any) -> None:
    """Let one frame fail."""
    fail_once(type(screen.parts.status), "render", "one frame")
    screen.parts.status.refresh()


def paint_always(screen: Any) -> None:
    """Let every frame fail."""
    type(screen._compositor).render_update = lambda *_, **__: fail("every frame")
    screen.parts.status.refresh()


def show_once(screen: Any) -> None:
    """Let the next update of the conversation in view fail."""
    fail_once(type(screen.parts.transcript), "apply", "an update")


def read_once(screen: Any) -> None:
    """Let the thread that reads the keys fail at the next ones."""
    from phoenix_tui.terminal.input import TerminalInput  # noqa: PLC0415 - loaded by then

    fail_once(TerminalInput, "feed", "the reading thread")
    screen.toasts.tell("the next key fails")


PLANTED: Final[dict[str, Callable[[Any], object]]] = {
    "f13": lambda _: fail("a handler"),
    "f14": begin_ticks,
    "f15": lambda screen: screen.run_worker(fail_later("a worker")),
    "f16": paint_once,
    "f17": begin_callbacks,
    "f18": paint_always,
    "f19": show_once,
    "f20": read_once,
}
"""Faults by the key of the workspace that leads to them."""


def run() -> int:
    """Phoenix with those keys; in the help, F13 fails."""
    import phoenix_tui.wiring.screen as wiring  # noqa: PLC0415 - after the terminal is raw, as in the real entry

    show: Any = getattr(wiring, "_show")  # noqa: B009 - private, and patched for this child alone

    def show_faulty(*arguments: Any) -> int:
        from phoenix_tui.modals.help_sheet import HelpSheet  # noqa: PLC0415 - as above
        from phoenix_tui.workspace.screen import WorkspaceScreen  # noqa: PLC0415 - as above

        def key_in_workspace(self: Any, event: Any) -> None:
            PLANTED.get(event.key, lambda _: None)(self)

        def key_in_help(_: Any, event: Any) -> None:
            if event.key == "f13":
                fail("a sheet")

        setattr(WorkspaceScreen, "on_key", key_in_workspace)  # noqa: B010 - as above
        setattr(HelpSheet, "on_key", key_in_help)  # noqa: B010 - as above
        return int(show(*arguments))

    setattr(wiring, "_show", show_faulty)  # noqa: B010 - as above
    return main()


if __name__ == "__main__":
    sys.exit(run())
