"""A sheet that was closed is gone: nothing of it is kept, however often it is opened."""

from __future__ import annotations

import gc
from typing import Any

from phoenix_tui.widgets.line_input import LineInput


async def test_the_line_of_a_closed_sheet_is_not_kept(open_shell: Any) -> None:
    async with open_shell() as shell:
        for _ in range(6):
            await shell.pilot.press("f1")
            await shell.pilot.pause()
            await shell.pilot.press("escape")
            await shell.pilot.pause()
        gc.collect()
        lines = [one for one in gc.get_objects() if isinstance(one, LineInput)]
        assert len(lines) <= 2, "every closed sheet was kept, some 100 kB each"
