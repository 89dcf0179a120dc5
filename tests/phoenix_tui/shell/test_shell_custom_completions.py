"""Skills and command files in the popup while their files are still being looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from phoenix_tui.features.custom_commands import CustomCommands
from phoenix_tui.widgets.completion_popup import Completion
from tests.phoenix_tui.writing.test_custom_completions import custom, one


class SlowSource:
    """Finds a command once the test lets it."""

    def __init__(self) -> None:
        self.found = custom()
        self.released = asyncio.Event()

    def now(self) -> CustomCommands | None:
        return self.found

    async def look(self) -> None:
        await self.released.wait()
        self.found = custom(one("fix-issue", "Fixes it."))

    async def values(self, line: str) -> Sequence[Completion]:
        return ()


async def test_letters_typed_before_the_files_were_looked_at_leave_no_command_out(open_shell: Any) -> None:
    async with open_shell() as shell:
        source = SlowSource()
        shell.dock.completer.offer_custom(source)
        await shell.type("/fix")
        assert "Fixes it." not in shell.text
        source.released.set()
        await shell.until(lambda: "Fixes it." in shell.text)
