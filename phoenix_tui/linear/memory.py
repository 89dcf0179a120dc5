"""The notes of the project and of the user in lines: read one, delete one, restore it."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.memory import NO_NOTES, facts, new_note, notes_in_view, notes_of, said
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.clean import clean, clean_line

ACTIONS: Final = ("read it", "show its path, to edit it", "delete it")


async def _memory(ctx: LinearContext, text: str) -> None:
    match text:
        case "undo":
            ctx.say(await ctx.note_changes.undo())
        case "new":
            ctx.say(f"Write your note in {clean_line(str(await new_note(ctx)))}")
        case _:
            await _choose(ctx)


async def _choose(ctx: LinearContext) -> None:
    notes = await notes_in_view(ctx)
    ctx.say(*filter(None, (clean_line(notes.cost),)))
    rows = notes.rows
    if not rows:
        ctx.say(NO_NOTES)
        return
    names = [clean_line(f"{row.name}, {heading}, {facts(row)}: {row.first_line}") for heading, row in rows]
    chosen = await ctx.choose("Notes:", names)
    if chosen is None:
        return
    _, row = rows[chosen]
    match await ctx.choose(f"{row.name}:", ACTIONS):
        case 0:
            ctx.read(row.name, clean(await said(notes_of(ctx).read(row.path))))
        case 1:
            ctx.say(clean_line(str(await said(notes_of(ctx).place(row.path)))))
        case 2:
            ctx.say(await ctx.note_changes.remove(row))
        case _:
            pass  # none was wanted


RUNS: Final[dict[str, LineCommand]] = {"memory": _memory}
