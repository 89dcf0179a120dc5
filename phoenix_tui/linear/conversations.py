"""Commands on conversations: begin one, remove one, search messages."""

from __future__ import annotations

from typing import Final

from engine.search import SearchSyntaxError, parse_search
from phoenix_tui.features import conversations
from phoenix_tui.features.archive import archive_or_delete
from phoenix_tui.linear.asker import MOST_LISTED
from phoenix_tui.linear.context import LinearContext, LineCommand
from tools.wording import counted


async def _new(ctx: LinearContext, _: str) -> None:
    if ctx.active.conversation is not None:
        ctx.active.conversation.hooks.end_reason = "clear"
    await ctx.active.put_away("")
    ctx.say("New conversation.")


async def _now(ctx: LinearContext, text: str) -> None:
    if text:
        await ctx.active.send(text, interrupt=True)


async def _search(ctx: LinearContext, text: str) -> None:
    try:
        query = parse_search(text or await ctx.ask_line("Search for"), cwd=ctx.launch.cwd)
    except SearchSyntaxError as error:
        ctx.say(f"Search failed: {error}")
        return
    hits = (await ctx.services.library.search(query, limit=MOST_LISTED)).hits
    if not hits:
        ctx.say("No matches. Use fewer words to find more.")
        return
    rows = [f"{hit.title or 'new conversation'}, {hit.speaker.value}: {hit.snippet}" for hit in hits]
    chosen = await ctx.choose("Found:", rows)
    if chosen is not None:
        await ctx.open(hits[chosen].conversation_id)
        ctx.say("Matching message:")
        await ctx.active.read_at(hits[chosen].seq)


async def _find(ctx: LinearContext, text: str) -> None:
    conversation = ctx.opened
    text = text or (await ctx.ask_line("Find") if conversation is not None else "")
    if conversation is None or not text:
        return
    found = (await ctx.services.library.find(conversation.id, text))[-MOST_LISTED:]
    if not found:
        ctx.say("No matches in this conversation. /search searches all conversations.")
        return
    rows = [
        f"message {one.seq}{', output of a tool' if one.call_id else ''}, {counted(one.count, 'time')}" for one in found
    ]
    chosen = await ctx.choose("Matches, newest last:", rows)
    if chosen is not None:
        await ctx.active.read_at(found[chosen].seq)


async def _delete(ctx: LinearContext, _: str) -> None:
    await _archive_or_delete(ctx, delete=True)


async def _archive(ctx: LinearContext, _: str) -> None:
    await _archive_or_delete(ctx, delete=False)


async def _archive_or_delete(ctx: LinearContext, *, delete: bool) -> None:
    conversation = ctx.conversation
    if conversation is None:
        ctx.say("No conversation is open.")
        return
    if not ctx.active.busy and not conversation.read_only:
        await ctx.active.put_away("")
    ctx.say((await archive_or_delete(ctx.services.engine, [conversation.id], delete=delete)).words())


RUNS: Final[dict[str, LineCommand]] = {
    "archive": _archive,
    "delete": _delete,
    "export": conversations.export,
    "find": _find,
    "fork": conversations.fork,
    "new": _new,
    "now": _now,
    "rename": conversations.rename,
    "resume": conversations.resume,
    "retry": conversations.retry,
    "search": _search,
    "stop": conversations.stop,
    "stopall": conversations.stop_all,
}
