"""Looking and going back in lines: search, changes on disk, rewinding by numbered choices."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from engine.ports.files import BranchRow, FileChange
from engine.rewind.rewind import Preview, PreviewFile, RewindList, RewindPoint, RewindScope
from engine.search import SearchSyntaxError, parse_search
from phoenix_tui.features.changes import ChangeSet, ShownFile, changes_in_view, without_lines
from phoenix_tui.features.rewind import HowFar, Instead, OtherWay, RewindCommands, RewindTarget, Way, others_of
from phoenix_tui.linear.context import run_compact
from phoenix_tui.linear.line_context import MOST_LISTED, LinearContext, LineCommand
from phoenix_tui.text.context_text import describe_unrestored
from phoenix_tui.text.labels import age
from tools.clean import clean, clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation


async def run_search(ctx: LinearContext, text: str) -> None:
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


async def run_find(ctx: LinearContext, text: str) -> None:
    conversation = ctx.opened
    text = text or (await ctx.ask_line("Find") if conversation is not None else "")
    if conversation is None or not text:
        return
    found = (await ctx.services.library.find(conversation.id, text))[-MOST_LISTED:]
    if not found:
        ctx.say("No matches in this conversation. /search searches all conversations.")
        return
    rows = [
        f"message {one.seq}{', output of a tool' if one.call_id else ''}, {pluralize(one.count, 'time')}"
        for one in found
    ]
    chosen = await ctx.choose("Matches, newest last:", rows)
    if chosen is not None:
        await ctx.active.read_at(found[chosen].seq)


MOST_ROWS: Final = 200
VERBS: Final = {"+": "New", "-": "Deleted", "~": "Changed"}


async def run_diff(ctx: LinearContext, _: str) -> None:
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
    chosen = await ctx.choose("Changes:", [f"{one.title}, {pluralize(len(one.files), 'file')}" for one in sets])
    return sets[chosen] if chosen is not None else None


def _row(file: ShownFile) -> str:
    lines = f"{pluralize(file.added, 'line')} added, {file.removed} removed"
    return f"{VERBS[file.sign]} {clean_line(file.name)}, {lines}{f', {file.remark}' if file.remark else ''}"


MOST_FILES: Final = 30
WORDS: Final[dict[Way, str]] = {
    RewindScope.BOTH: "Conversation and files, back to before this prompt",
    RewindScope.CONVERSATION: "Conversation only; files are kept",
    RewindScope.FILES: "Files only; the conversation is kept",
    Instead.SUMMARY: "No rewind; summarize the messages before this prompt",
}


class LineRewindAsker:
    """Asks with numbered rows."""

    undo_keys = undo_keys_over_text = "/undo"
    branching_keys = "/rewind or /fork"

    def __init__(self, ctx: LinearContext, conversation: Conversation) -> None:
        self._ctx = ctx
        self._conversation = conversation

    async def which_prompt(self, found: RewindList) -> RewindTarget | None:
        """The prompts, and behind them interrupted rewinds."""
        rows = [_point(point) for point in found.points]
        orders: list[RewindTarget] = list(found.points)
        if found.unfinished:
            files = pluralize(found.unfinished, "file")
            rows += [f"Finish the interrupted restore: {files}", f"Undo the interrupted restore: {files}"]
            orders += [OtherWay.FINISH, OtherWay.TAKE_BACK]
        chosen = await self._ctx.choose("Rewind to before which prompt? /undo undoes the last rewind:", rows)
        return orders[chosen] if chosen is not None else None

    async def how_far(self, point: RewindPoint, preview: Preview, ways: Sequence[Way]) -> HowFar | None:
        """Print the changes, then ask for the way, then about the files changed by others."""
        self._ctx.say(*_disk(preview))
        chosen = await self._ctx.choose("Rewind what?", [WORDS[way] for way in ways])
        if chosen is None:
            return None
        way = ways[chosen]
        touches = way in {RewindScope.BOTH, RewindScope.FILES}
        overwrite = await self._overwritten(preview) if touches else frozenset[bytes]()
        return HowFar(way, overwrite) if overwrite is not None else None

    async def summarize_before(self, seq: int) -> None:
        """Read it out before it counts."""
        await run_compact(self._ctx, before=seq)

    async def overwritten_by_undo(self, preview: Preview) -> frozenset[bytes] | None:
        """Print the changes, then ask about the files changed by others."""
        self._ctx.say(*_disk(preview))
        return await self._overwritten(preview)

    async def which_branch(self, branches: Sequence[BranchRow]) -> str | None:
        """The branches, one row each."""
        chosen = await self._ctx.choose("Branches:", [_branch(row, self._conversation.id) for row in branches])
        return branches[chosen].id if chosen is not None else None

    async def show(self, branch: Conversation) -> None:
        """Read it out from now on."""
        await self._ctx.open(branch.id)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Print a line; an error is clear from its text."""
        self._ctx.say(clean_line(text))

    async def _overwritten(self, preview: Preview) -> frozenset[bytes] | None:
        """Ask which files changed by others are restored too; None when the user gives up."""
        others = others_of(preview)
        if not others:
            return others
        chosen = await self._ctx.choose(
            f"{pluralize(len(others), 'file')} changed since then by someone else.",
            ("Keep them", "Overwrite them"),
        )
        return None if chosen is None else others if chosen == 1 else frozenset()


def _run(way: Callable[[RewindCommands], Awaitable[None]]) -> LineCommand:
    async def run(ctx: LinearContext, _: str) -> None:
        conversation, rewinding = ctx.opened, ctx.services.rewinding
        if conversation is not None and rewinding is not None:
            await way(RewindCommands(LineRewindAsker(ctx, conversation), ctx.services.engine, conversation, rewinding))

    return run


def _point(point: RewindPoint) -> str:
    files = len({change.path for change in point.files if not change.only_folder})
    changed = f", {pluralize(files, 'file')} changed" if files else ""
    return f"{clean_line(point.text) or 'only an image'}, {age(time.time() - point.at)} ago{changed}"


def _branch(row: BranchRow, here: str) -> str:
    this = ", this one" if row.id == here else ""
    messages = pluralize(row.message_count, "message")
    return f"{row.title or 'new conversation'}{this}, {messages}, newest: {row.newest_prompt or 'nothing'}"


def _disk(preview: Preview) -> Iterator[str]:
    """Effect of restoring files, a line for each file."""
    if preview.refusal:
        yield f"Files are kept: {clean_line(preview.refusal)}"
    files = [file for file in preview.files if not file.change.only_folder]
    yield from (_file(file) for file in files[:MOST_FILES])
    if len(files) > MOST_FILES:
        yield f"And {len(files) - MOST_FILES} more."
    if not files and not preview.refusal:
        yield "All files are already in that state."
    if not preview.refusal and (words := describe_unrestored(preview.coverage)):
        yield words


def _file(file: PreviewFile) -> str:
    verb = "Keep" if file.conflict else _verb(file.change)
    lines = (
        f", {pluralize(file.change.added, 'line')} added, {file.change.removed} removed" if file.change.added else ""
    )
    return f"{verb} {clean_line(file.change.name)}{lines}{f', {clean_line(file.conflict)}' if file.conflict else ''}"


def _verb(change: FileChange) -> str:
    if change.after is None:
        return "Delete"
    return "Create" if change.before is None else "Change"


run_rewind: Final = _run(RewindCommands.rewind)
run_undo: Final = _run(RewindCommands.undo)
run_branches: Final = _run(RewindCommands.branches)
