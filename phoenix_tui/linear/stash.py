"""/stash in lines: puts a text aside, lists the drafts, and gives one back to be changed and sent."""

from __future__ import annotations

import time
from typing import Final

from engine.executor.requests import Refused
from phoenix_tui.features.draft_stash import NOT_KEPT, NOTHING, DraftStash
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.queue import queue_up
from phoenix_tui.text.labels import ago


async def _stash(ctx: LinearContext, text: str) -> None:
    if not ctx.services.kept:
        ctx.say(NOT_KEPT)
        return
    kept = DraftStash(ctx.launch.state_folder, ctx.launch.cwd)
    try:
        if text:
            ctx.say(kept.put(text) or "Put aside. /stash lists the drafts.")
            return
        found = kept.all()
        if not found:
            ctx.say(f"{NOTHING} /stash TEXT puts a text aside.")
            return
        rows = [f"{one.words}, {ago(time.time() - one.at)}" for one in found]
        chosen = await ctx.choose("Drafts put aside:", rows)
        if chosen is None:
            return
        line = await ctx.ask_line("Message, Enter sends it, Esc keeps it", found[chosen].text)
        if line and kept.take(found[chosen]) and not await _sent(ctx, line):
            kept.put(line)
    except OSError as error:
        ctx.say(f"The draft could not be put aside or taken: {error.strerror or error}.")


async def _sent(ctx: LinearContext, line: str) -> bool:
    """Send a draft, or queue it while the agent works; False where it was refused."""
    if ctx.active.busy:
        return not isinstance(await queue_up(ctx, line), Refused)
    return await ctx.active.send(line)


RUNS: Final[dict[str, LineCommand]] = {"stash": _stash}
