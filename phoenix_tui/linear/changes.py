"""Changes on disk, in lines: the sets, the files of one, the change of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phoenix_tui.features.changes import ChangeSet, ShownFile, changes_in_view, without_lines
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.clean import clean, clean_line
from tools.wording import counted

MOST_ROWS: Final = 200
VERBS: Final = {"+": "New", "-": "Deleted", "~": "Changed"}


async def diff(ctx: LinearContext, _: str) -> None:
    """Choose a set, then a file, and read its change."""
    changes = changes_in_view(ctx)
    if changes is None:
        return
    chosen = await _set(ctx, [one for one in await changes.sets() if one.files or one.note])
    if chosen is None:
        return
    ctx.say(*filter(None, (chosen.note,)))
    while (place := await ctx.choose("Show which file?", [_row(file) for file in chosen.files])) is not None:
        file = chosen.files[place]
        found = await changes.diff(file)
        rows = clean(found.diff).splitlines()[2:] if found is not None else [without_lines(file)]
        ctx.say(*rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            ctx.say(f"{len(rows) - MOST_ROWS} more lines.")


async def _set(ctx: LinearContext, sets: Sequence[ChangeSet]) -> ChangeSet | None:
    if not sets:
        ctx.say("No files changed.")
        return None
    if len(sets) == 1:
        return sets[0]
    chosen = await ctx.choose("Changes:", [f"{one.title}, {counted(len(one.files), 'file')}" for one in sets])
    return sets[chosen] if chosen is not None else None


def _row(file: ShownFile) -> str:
    lines = f"{counted(file.added, 'line')} added, {file.removed} removed"
    return f"{VERBS[file.sign]} {clean_line(file.name)}, {lines}{f', {file.remark}' if file.remark else ''}"


RUNS: Final[dict[str, LineCommand]] = {"diff": diff}
