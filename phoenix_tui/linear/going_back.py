"""Going back in numbered choices: the prompts, what changes on disk, how far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.ports import ConversationChanges
from engine.ports.files import FileChange, FilesError
from engine.rewinding.rewinding import CannotRewind
from engine.rewinding.values import Done, Preview, PreviewFile, RewindPoint, Scope
from phoenix_tui.labels import age
from phoenix_tui.linear.command import LinearCommand, open_conversation
from phoenix_tui.linear.spoken import count
from phoenix_tui.rewind_surface import RewindSurface
from phoenix_tui.surface import ConversationSurface
from phoenix_tui.unsent import joined
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

MOST_FILES: Final = 30
WAYS: Final = (
    (Scope.BOTH, "Both: the prompt comes back to be edited, the files go back as they were before it"),
    (Scope.CONVERSATION, "The conversation alone: the prompt comes back to be edited, the files stay"),
    (Scope.FILES, "The files alone: as they were before it; the conversation stays"),
)


async def _rewind(front: LinearFront, _: str) -> None:
    here = _here(front)
    if here is None:
        return
    conversation, rewinding = here
    try:
        found = await rewinding.points(conversation.record)
        rows = [_point(point) for point in found.points]
        if found.unfinished:
            rows.append(f"Finish going back, which a crash cut off: {count(found.unfinished, 'file')}")
        if not rows:
            front.say("Nothing was said here yet, so there is nothing to go back to.")
            return
        chosen = await front.choose("Go back to before which message? /undo takes the last way back:", rows)
        if chosen is None:
            return
        if chosen == len(found.points):
            await _show(front, conversation, await rewinding.finish(conversation.record))
        else:
            await _go_back(front, conversation, rewinding, found.points[chosen])
    except (CannotRewind, FilesError) as error:
        front.say(f"Refused: {clean_line(str(error))}")


async def _undo(front: LinearFront, _: str) -> None:
    here = _here(front)
    if here is None:
        return
    conversation, rewinding = here
    try:
        if (await rewinding.points(conversation.record)).takeback is None:
            front.say("Nothing went back here, so there is nothing to undo. /rewind goes back.")
            return
        preview = await rewinding.preview_undo(conversation.record)
        front.say(*_disk(preview))
        overwrite = await _overwritten(front, preview)
        if overwrite is not None:
            done = await rewinding.undo(conversation.record, conversation.state, overwrite)
            await _show(front, conversation, done)
    except (CannotRewind, FilesError) as error:
        front.say(f"Refused: {clean_line(str(error))}")


async def _branches(front: LinearFront, _: str) -> None:
    here = _here(front)
    if here is None:
        return
    conversation, rewinding = here
    family = await rewinding.branches(conversation.record)
    if len(family) < 2:
        front.say("This conversation has no branches: /rewind or /fork makes one.")
        return
    rows = [
        f"{row.title or 'new conversation'}{', this one' if row.id == conversation.id else ''}, "
        f"{count(row.message_count, 'message')}, newest: {row.newest_prompt or 'nothing'}"
        for row in family
    ]
    chosen = await front.choose("Branches:", rows)
    if chosen is None or family[chosen].id == conversation.id:
        return
    try:
        done = await rewinding.switch(conversation.record, conversation.state, family[chosen].id)
    except (CannotRewind, FilesError) as error:
        front.say(f"Refused: {clean_line(str(error))}")
    else:
        await _show(front, conversation, done)


async def _go_back(
    front: LinearFront, conversation: ConversationSurface, rewinding: RewindSurface, point: RewindPoint
) -> None:
    record = conversation.record
    preview = await rewinding.preview(record, point.seq)
    front.say(*_disk(preview))
    ways = [WAYS[1]] if preview.refusal or not preview.files else list(WAYS)
    chosen = await front.choose("How far?", [words for _, words in ways])
    if chosen is None:
        return
    scope = ways[chosen][0]
    overwrite = frozenset[bytes]() if scope is Scope.CONVERSATION else await _overwritten(front, preview)
    if overwrite is not None:
        done = await rewinding.rewind(record, conversation.state, point.seq, scope, overwrite)
        await _show(front, conversation, done)


async def _overwritten(front: LinearFront, preview: Preview) -> frozenset[bytes] | None:
    """Which files of others go back too; None where the user gives up."""
    others = [file for file in preview.files if file.conflict and file.possible]
    if not others:
        return frozenset()
    chosen = await front.choose(
        f"{count(len(others), 'file')} changed since by somebody else.", ("Leave them alone", "Take them back too")
    )
    return None if chosen is None else frozenset(file.change.path for file in others if chosen == 1)


async def _show(front: LinearFront, before: ConversationSurface, done: Done) -> None:
    if done.conversation_id != before.id:
        engine = front.services.engine
        if done.text or done.image_ids:
            branch = await engine.open(done.conversation_id)
            await branch.change(ConversationChanges(draft=joined(done.text, done.image_ids)))
        await front.open(done.conversation_id)
        if not any(job.running for job in before.jobs()):
            await engine.forget(before.id)
    files = f"{count(done.restored, 'file')} went back." if done.restored else "No file changed."
    front.say(f"{files} /undo takes it back.")
    for one in done.problems:
        front.say(f"Left as it is: {clean_line(one.path.decode('utf-8', 'replace'))}, {clean_line(one.problem)}")


def _here(front: LinearFront) -> tuple[ConversationSurface, RewindSurface] | None:
    conversation, rewinding = open_conversation(front), front.services.rewinding
    if conversation is None or rewinding is None:
        return None
    reason = conversation.read_only or rewinding.why_not(conversation.state)
    if reason:
        front.say(f"Refused: {clean_line(reason)}")
        return None
    return conversation, rewinding


def _point(point: RewindPoint) -> str:
    files = len({change.path for change in point.files if not change.only_folder})
    changed = f", {count(files, 'file')} changed" if files else ""
    return f"{clean_line(point.text) or 'only an image'}, {age(time.time() - point.at)} ago{changed}"


def _disk(preview: Preview) -> Iterator[str]:
    """What restoring files would do, a line for each file."""
    if preview.refusal:
        yield f"Files stay: {clean_line(preview.refusal)}"
    files = [file for file in preview.files if not file.change.only_folder]
    yield from (_file(file) for file in files[:MOST_FILES])
    if len(files) > MOST_FILES:
        yield f"And {len(files) - MOST_FILES} more."
    if not files and not preview.refusal:
        yield "Every file is already as it was."
    if preview.coverage.left_out:
        names = ", ".join(clean_line(name) for name in preview.coverage.left_out[:4])
        yield f"Not covered: {names}."


def _file(file: PreviewFile) -> str:
    verb = "Keep" if file.conflict else _verb(file.change)
    lines = f", {count(file.change.added, 'line')} added, {file.change.removed} removed" if file.change.added else ""
    return f"{verb} {clean_line(file.change.name)}{lines}{f', {clean_line(file.conflict)}' if file.conflict else ''}"


def _verb(change: FileChange) -> str:
    if change.after is None:
        return "Delete"
    return "Create" if change.before is None else "Change"


COMMANDS: Final[dict[str, LinearCommand]] = {
    "rewind": LinearCommand("go back to before a message: this conversation, its files or both", _rewind),
    "undo": LinearCommand("take the last way back", _undo),
    "branches": LinearCommand("the branches that going back and /fork made; open one", _branches),
}
