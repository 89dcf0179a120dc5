"""Commands that go back: /rewind, /undo, /branches."""

from __future__ import annotations

from typing import Final

from engine.ports import ConversationChanges
from engine.ports.files import FilesError
from engine.records import ConversationRecord
from engine.rewinding.rewinding import CannotRewind
from engine.rewinding.values import Done, Preview, RewindPoint, Scope
from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.rewind_surface import RewindSurface
from phoenix_tui.screens.branches import BranchesScreen
from phoenix_tui.screens.go_back import GoBackSheet
from phoenix_tui.screens.rewind import Order, RewindSheet
from phoenix_tui.surface import ConversationSurface
from phoenix_tui.unsent import joined
from phoenix_tui.widgets.blocks.rows import count_text
from tools.clean import clean_line

NOTHING_SAID: Final = "Nothing was said here yet, so there is nothing to go back to."
NAMES: Final = 3


async def rewind(bench: Bench, _: str) -> None:
    """List the prompts of this conversation; go back to before one of them."""
    here = _here(bench)
    if here is None:
        return
    conversation, rewinding = here
    try:
        found = await rewinding.points(conversation.record)
        if not found.points and found.takeback is None:
            bench.tell(NOTHING_SAID)
            return
        order = await bench.sheets.show(RewindSheet(found, plain=bench.desk.launch.plain))
        if order is not None:
            points = {point.seq: point for point in found.points}
            await _follow(bench, conversation, rewinding, order, points.get(order.seq))
    except (CannotRewind, FilesError) as error:
        bench.tell(str(error), bad=True)


async def branches(bench: Bench, _: str) -> None:
    """The tree of branches; Enter shows one in place of this."""
    here = _here(bench)
    if here is None:
        return
    conversation, rewinding = here
    family = await rewinding.branches(conversation.record)
    if len(family) < 2:
        bench.tell("This conversation has no branches: going back (Esc Esc) or /fork makes one.")
        return
    chosen = await bench.sheets.pick(BranchesScreen(family, conversation.id, plain=bench.desk.launch.plain))
    if not chosen or chosen == conversation.id:
        return
    try:
        await _show(bench, conversation, await rewinding.switch(conversation.record, conversation.state, chosen))
    except (CannotRewind, FilesError) as error:
        bench.tell(str(error), bad=True)


async def _follow(
    bench: Bench,
    conversation: ConversationSurface,
    rewinding: RewindSurface,
    order: Order,
    point: RewindPoint | None,
) -> None:
    record = conversation.record
    if order.branches:
        await branches(bench, "")
    elif order.finish or order.take_back:
        await _show(bench, conversation, await rewinding.finish(record, take_back=order.take_back))
    elif order.undo:
        await _undo(bench, conversation, rewinding)
    elif point is not None:
        await _go_back(bench, conversation, rewinding, point)


async def _go_back(
    bench: Bench, conversation: ConversationSurface, rewinding: RewindSurface, point: RewindPoint
) -> None:
    record = conversation.record
    preview = await rewinding.preview(record, point.seq)
    sheet = GoBackSheet(
        f"Back to before “{clean_line(point.text)}”",
        preview,
        rewinding.diff,
        _ways(preview),
        plain=bench.desk.launch.plain,
    )
    choice = await bench.sheets.show(sheet)
    if choice is None:
        return
    done = await rewinding.rewind(record, conversation.state, point.seq, choice.scope, choice.overwrite)
    await _show(bench, conversation, done)


def _ways(preview: Preview) -> tuple[tuple[Scope, str], ...]:
    conversation = (Scope.CONVERSATION, "conversation   the prompt to edit; the files stay")
    if preview.refusal or not preview.files:
        return (conversation,)
    return (
        (Scope.BOTH, "both           the prompt to edit, the files as before it"),
        conversation,
        (Scope.FILES, "files          as before it; the conversation stays"),
    )


async def _undo(bench: Bench, conversation: ConversationSurface, rewinding: RewindSurface) -> None:
    record = conversation.record
    preview = await rewinding.preview_undo(record)
    overwrite: frozenset[bytes] = frozenset()
    if any(file.conflict for file in preview.files):
        ways = ((Scope.BOTH, "undo           everything that the last rewind did"),)
        sheet = GoBackSheet("Undo the last rewind", preview, rewinding.diff, ways, plain=bench.desk.launch.plain)
        choice = await bench.sheets.show(sheet)
        if choice is None:
            return
        overwrite = choice.overwrite
    await _show(bench, conversation, await rewinding.undo(record, conversation.state, overwrite))


def _here(bench: Bench) -> tuple[ConversationSurface, RewindSurface] | None:
    """The conversation and what goes back in it; where it cannot, the reason is said."""
    conversation, rewinding = bench.desk.conversation, bench.desk.services.rewinding
    if conversation is None or rewinding is None:
        bench.tell(NOTHING_SAID)
        return None
    reason = conversation.read_only or rewinding.why_not(conversation.state)
    if reason:
        bench.tell(reason, bad=True)
        return None
    return conversation, rewinding


async def _show(bench: Bench, before: ConversationSurface, done: Done) -> None:
    """Put the other branch on the desk, with what was taken back in the composer, and say what came of the files."""
    engine = bench.desk.services.engine
    if done.conversation_id != before.id:
        branch = await engine.open(done.conversation_id)
        if done.text or done.image_ids:
            await branch.change(ConversationChanges(draft=joined(done.text, done.image_ids)))
        await bench.desk.show(branch)
        if not any(job.running for job in before.jobs()):
            await engine.forget(before.id)
        await bench.desk.overview.reload()
    bench.tell(_outcome(before.record, done))
    if done.problems:
        names = ", ".join(f"{clean_line(_name(one.path))} ({one.problem})" for one in done.problems[:NAMES])
        more = f" and {len(done.problems) - NAMES} more" if len(done.problems) > NAMES else ""
        bench.tell(f"Left as they are: {names}{more}.", bad=True)


def _name(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def _outcome(before: ConversationRecord, done: Done) -> str:
    files = f"{count_text(done.restored, 'file')} went back. " if done.restored else ""
    if done.conversation_id == before.id:
        return (
            f"{files}The agent is told with your next message. Esc Esc, then u takes it back."
            if files
            else "No file changed."
        )
    files = files or "Files stay as they are. "
    return f"{files}This is another branch; Esc Esc, then u goes back to the other one."


RUNS: Final[dict[str, Run]] = {"rewind": rewind, "undo": rewind, "branches": branches}
