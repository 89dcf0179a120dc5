"""The real program, which tells what is open once all keys so far are done: `python -m tests.support.pressing_child`.

It answers each line on the socket `SOCKET` of its home with `Open` as JSON: `close` closes all sheets first, `wait`
waits for what a command opens. Each line stands for a `MARK` that the terminal sent behind its keys.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from textual.widgets import TextArea

from phoenix_tui.__main__ import main
from phoenix_tui.modals.tabs import TabRow
from tests.support.waiting import poll

SOCKET: Final = "pressed"
MARK: Final = b"\x1b[?1;2c"
"""A reply of a terminal, which Phoenix hands to its listeners in the order of the input."""
FEW: Final = 8
"""Turns of the loop that a key takes at least."""
PATIENCE: Final = 2.0
"""Seconds that keys and what they open may take."""


class Open(msgspec.Struct):
    """The sheet or question that has the keys."""

    sheet: str
    """Class of the sheet on top, and the title of a page; empty for the workspace."""
    number: int
    """Another one for each sheet, and for each question."""
    tab: str
    """Title of its tab, where it is one of several."""
    keys: list[str]
    """Keys that it has."""
    asks: bool
    """True while a question is open in the workspace."""


class Teller:
    """Answers about one app."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._marks = asyncio.Semaphore(0)
        app._driver.replies.append(self._count)

    def _count(self, reply: str) -> None:
        if reply == MARK.decode():
            self._marks.release()

    async def serve(self) -> None:
        """Listen."""
        await asyncio.start_unix_server(self._talk, Path(os.environ["HOME"]) / SOCKET)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := (await reader.readline()).split():
            await self._marks.acquire()
            await self._rest()
            if b"close" in words:
                await poll(self._is_closed, PATIENCE)
            if b"wait" in words:
                await poll(lambda: self._has_opened or not self._works, PATIENCE)
            writer.write(msgspec.json.encode(self._open()) + b"\n")

    async def _rest(self) -> None:
        order = self._app.key_order
        for _ in range(FEW):
            await asyncio.sleep(0)
        await poll(lambda: order._waits is not None or self._is_at_rest, PATIENCE)
        while await order.settle():
            await poll(lambda: order._waits is not None or self._is_at_rest, PATIENCE)
        order.rest()

    @property
    def _is_at_rest(self) -> bool:
        return self._app.key_order._under_way is None and not self._app.keys_waiting

    @property
    def _works(self) -> bool:
        return any(one.group == "work" and not one.is_finished for one in self._app.workers)

    @property
    def _has_opened(self) -> bool:
        return len(self._app.screen_stack) > 1 or self._app._workspace.parts.dock.question.display

    def _is_closed(self) -> bool:
        for sheet in reversed(self._app.screen_stack[1:]):
            sheet.dismiss()
        workspace = self._app._workspace
        workspace.parts.dock.composer.take()
        workspace.set_focus(workspace.parts.dock.composer)
        return not self._works and len(self._app.screen_stack) == 1

    def _open(self) -> Open:
        top, question = self._app.screen, self._app._workspace.parts.dock.question
        page = getattr(top, "page", None)
        name = type(top).__name__ if page is None else f"{type(top).__name__} {page.title}"
        name = name if len(self._app.screen_stack) > 1 else ""
        row = next(iter(top.query(TabRow)), None)
        tab = row.tabs.titles[row.tabs.place] if row is not None else ""
        bound = [key for key, one in top.active_bindings.items() if not isinstance(one.node, TextArea)]
        keys = [*bound, *(key for key, _ in question._bindings if question.display and not name)]
        return Open(name, id(top if name else question._question), tab, keys, asks=bool(question.display))


def run() -> int:
    """Phoenix with that socket."""
    import phoenix_tui.wiring.screen as wiring  # noqa: PLC0415 - after the terminal is raw, as in the real entry

    show: Any = getattr(wiring, "_show")  # noqa: B009 - private, and patched for this child alone

    def show_telling(*arguments: Any) -> int:
        from phoenix_tui.workspace.startup import Startup  # noqa: PLC0415 - as above

        settle: Any = Startup.settle

        def settled(startup: Any) -> None:
            settle(startup)
            startup._screen.run_worker(Teller(startup._screen.app).serve())

        setattr(Startup, "settle", settled)  # noqa: B010 - as above
        return int(show(*arguments))

    setattr(wiring, "_show", show_telling)  # noqa: B010 - as above
    return main()


if __name__ == "__main__":
    sys.exit(run())
