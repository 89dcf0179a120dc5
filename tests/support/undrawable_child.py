"""The real program with code that fails each time it is called: `python -m tests.support.undrawable_child ...`.

From the first frame on all of these fail: an answer that holds `cursed`, a call whose command holds it, a row that
holds `smudged` without its asterisks, any row that holds `spoiled`, the status line, the parts of the welcome panel,
the start of the title, a clock, a key of the workspace, and F13 in the help.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from phoenix_tui.__main__ import main
from tests.support.faulty_child import fail


def fail_for(owner: Any, name: str, word: str, where: str) -> None:
    """Let each call of this method fail that has this word among what it gets."""
    real = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        if word in repr([*arguments[isinstance(owner, type) :], *named.values()]):
            fail(where)
        return real(*arguments, **named)

    setattr(owner, name, failing)


def plant() -> None:
    """Let all of it fail."""
    from phoenix_tui.markdown.stream import MarkdownStream  # noqa: PLC0415 - as in the real entry
    from phoenix_tui.modals.help_sheet import HelpSheet  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.status_line import StatusLine, TitleRow  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.transcript import drawing  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.transcript.painter import Painter  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.welcome_panel import WelcomePanel  # noqa: PLC0415 - as above
    from phoenix_tui.workspace.screen import WorkspaceScreen  # noqa: PLC0415 - as above

    fail_for(MarkdownStream, "add", "cursed", "an answer under way")
    fail_for(MarkdownStream, "begin", "cursed", "an answer")
    fail_for(drawing, "tool_block", "cursed", "a call")
    fail_for(Painter, "strip", "'smudged", "a row")
    fail_for(Painter, "strip", "spoiled", "any row")
    fail_for(StatusLine, "render", "", "the status line")
    fail_for(WelcomePanel, "compose", "", "the parts of a panel")
    setattr(TitleRow, "on_mount", lambda _: fail("the start of a row"))  # noqa: B010 - planted

    def key_in_help(_: Any, event: Any) -> None:
        fail(f"the key {event.key} of a sheet")

    def begin_clock(self: Any, _: Any) -> None:
        setattr(WorkspaceScreen, "on_key", lambda *_: fail("a key"))  # noqa: B010 - as above
        self.set_interval(0.02, partial(fail, "a clock"))

    setattr(HelpSheet, "on_key", key_in_help)  # noqa: B010 - planted
    setattr(WorkspaceScreen, "on_key", begin_clock)  # noqa: B010 - as above


def run() -> int:
    """Phoenix with those faults."""
    import phoenix_tui.wiring.screen as wiring  # noqa: PLC0415 - after the terminal is raw, as in the real entry

    show: Any = getattr(wiring, "_show")  # noqa: B009 - private, and patched for this child alone

    def show_faulty(*arguments: Any) -> int:
        plant()
        return int(show(*arguments))

    setattr(wiring, "_show", show_faulty)  # noqa: B010 - as above
    return main()


if __name__ == "__main__":
    sys.exit(run())
