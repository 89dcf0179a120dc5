"""Conversations: open, name, copy, try again, stop, remove, write to a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.machine.states import is_busy
from engine.ports import ConversationChanges
from engine.records import ConversationQuery, ConversationSummary, build_fork_place
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.export import agent_markdown, markdown, write_new
from phoenix_tui.features.agents import family_of, views_of
from phoenix_tui.features.front_end import FrontEnd, Option, require_accepted
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.text.labels import age, short_path
from tools.clean import reveal_name
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.engine import Engine

ALL: Final = 1 << 40
"""Limit above the number of messages of any conversation."""
SHORT_ID: Final = 8


async def export_to(name: str, conversation: Conversation, services: Services) -> Path:
    """Write it to the file `name` in its folder, by itself `phoenix-ID.md`; a name that ends in `.json` gets JSON.

    Raises:
        CommandError: the file is there already or cannot be written.
        StorageError: the conversation cannot be read.
    """
    path = await asyncio.to_thread(_path, conversation, name)
    if path.suffix.lower() == ".json":
        text = encode(await services.library.export(conversation.id), indent=1) + "\n"
    else:
        found = await conversation.history(ALL, ALL)
        text = await asyncio.to_thread(markdown, conversation.record, found.messages, found.tool_calls)
        for view in views_of(services.engine, conversation.id):
            text += agent_markdown(view, await services.engine.bulk.newest(view.id, ALL))
    await asyncio.to_thread(write_new, path, text)
    return path


def _path(conversation: Conversation, name: str) -> Path:
    wanted = Path(name or f"phoenix-{conversation.id[:SHORT_ID]}.md")
    try:
        wanted = wanted.expanduser()
    except RuntimeError as error:  # no such user
        raise CommandError(f"{wanted} cannot be written: {error}") from error
    return conversation.record.cwd / wanted


UNTITLED: Final = "New conversation"


async def resume(front: FrontEnd, reference: str) -> None:
    """Open a conversation by title, slug or id, else choose one."""
    engine = front.services.engine
    found = await engine.find(reference, partly=True) if reference else ()
    if len(found) == 1:
        await front.open(found[0].id)
        return
    if reference:
        front.tell(
            f"There is no conversation {reference}." if not found else f"{len(found)} conversations match.", bad=True
        )
    rows = found or await engine.list(ConversationQuery(limit=front.most_options))
    if not rows:
        front.tell("There is no conversation to resume yet. A message begins one.")
        return
    now = time.time()
    options = [Option(row.id, row.title or UNTITLED, tuple(filter(None, _facts(row, now)))) for row in rows]
    if chosen := await front.pick("Resume a conversation", options):
        await front.open(chosen)


def _facts(row: ConversationSummary, now: float) -> tuple[str, ...]:
    remarks = "unread" if row.unread else "", "by a script" if row.scripted else ""
    return *remarks, short_path(row.cwd), pluralize(row.message_count, "message"), age(now - row.updated_at)


async def rename(front: FrontEnd, title: str) -> None:
    """Give the conversation in view a title."""
    conversation = front.conversation
    if conversation is None:
        front.tell("This conversation is empty; there is nothing to name. A message begins it.", bad=True)
        return
    title = title or await front.ask_line("Title of this conversation", conversation.record.title)
    if title.strip():
        await front.services.engine.change(conversation.id, ConversationChanges(title=title.strip()))


FORKS: Final = (
    "/fork copies this conversation; /fork --worktree NAME copies it into a git worktree, /fork -C FOLDER into another"
    " folder."
)
FOLDER_FLAGS: Final = ("-C", "--cwd")


async def fork(front: FrontEnd, argument: str) -> None:
    """Continue in a copy, in the same folder or in a git worktree of its own. Raises EngineError."""
    source = front.conversation
    if source is None:
        front.tell("This conversation is empty; there is nothing to fork. A message begins it.", bad=True)
        return
    copy = await _copy(front, source, argument) if argument.strip() else await front.services.engine.fork(source.id)
    if copy is None:
        front.tell(FORKS, bad=True)
        return
    await front.open(copy.id)
    front.tell("Forked. You are in the copy.")


async def _copy(front: FrontEnd, source: Conversation, argument: str) -> Conversation | None:
    """The copy that an argument of /fork wants; None for an unknown one."""
    from phoenix_tui.features.worktree import fork_into_worktree, worktree_name  # noqa: PLC0415 - git, seldom used

    flag, _, folder = argument.strip().partition(" ")
    if flag in FOLDER_FLAGS:
        return await _into_folder(front, source, folder.strip())
    name = worktree_name(argument)
    return None if name is None else await fork_into_worktree(front, source.id, source.record.cwd, name)


async def _into_folder(front: FrontEnd, source: Conversation, named: str) -> Conversation | None:
    """A copy in another folder, such as the one that the folder of the source was moved to."""
    if not named:
        return None
    folder = await asyncio.to_thread(_folder, source.record.cwd, named)
    return await front.services.engine.fork(source.id, place=build_fork_place(source.record.cwd, folder))


def _folder(start: Path, named: str) -> Path:
    """The folder of these words, resolved; relative ones begin where the conversation works. Raises EngineError."""
    folder = start / Path(named).expanduser()
    if not folder.is_dir():
        raise EngineError(f"There is no folder {reveal_name(folder)}.")
    return folder.resolve()


async def retry(front: FrontEnd, _: str) -> None:
    """Resume an interrupted turn, or try again."""
    conversation = front.conversation
    if conversation is not None:
        require_accepted(await conversation.retry(caps_for(front, conversation)))


async def stop(front: FrontEnd, _: str) -> None:
    """Stop the run in view."""
    if not front.stop():
        front.tell("Nothing is running in this conversation.")


async def stop_all(front: FrontEnd, _: str) -> None:
    """Stop every run."""
    engine = front.services.engine
    count = len({family_of(one) for one in engine.live() if is_busy(one.state)})
    await engine.stop_all()
    front.tell(f"{count} stopped." if count else "Nothing is running.")


async def export(front: FrontEnd, name: str) -> None:
    """Write the conversation in view as Markdown, or as JSON where the file's name ends so."""
    if front.conversation is None:
        front.tell("This conversation is empty; there is nothing to export. A message begins it.", bad=True)
        return
    try:
        path = await export_to(name, front.conversation, front.services)
    except CommandError as error:
        front.tell(error.sentence, bad=True)
    else:
        front.tell(f"Written to {path}.")


class ArchiveOutcome(Struct, frozen=True):
    """Conversations that were archived or deleted, and the number of refused ones."""

    ids: tuple[str, ...]
    deleted: bool
    running: int
    elsewhere: int
    """Open in another process."""

    def words(self, undo: str = "") -> str:
        """Result in words, with the undo, and with the refusals."""
        many = "" if len(self.ids) == 1 else f" {len(self.ids)}"
        done = f"Moved{many} to the trash" if self.deleted else f"Archived{many}"
        parts = [f"{done} · {undo}." if undo else f"{done}."] if self.ids else []
        return " ".join([*parts, *filter(None, (not_done(self.running, self.elsewhere),))])


def not_done(running: int, elsewhere: int) -> str:
    """Reason why some conversations stay unchanged; empty where none does."""
    parts: list[str] = []
    if running:
        parts.append(
            "The conversation is running; stop it first."
            if running == 1
            else f"{running} are running; stop them first."
        )
    if elsewhere:
        parts.append(f"{elsewhere} open in another Phoenix; close {'it' if elsewhere == 1 else 'them'} there.")
    return " ".join(parts)


async def archive_or_delete(engine: Engine, ids: Sequence[str], *, delete: bool) -> ArchiveOutcome:
    """Archive or trash those that rest. Raises StorageError."""
    running = {one.id for one in engine.live() if is_busy(one.state)}
    resting = [one for one in ids if one not in running]
    changes = ConversationChanges(deleted=True) if delete else ConversationChanges(archived=True)
    refused = await engine.bulk.change(resting, changes)
    moved = tuple(one for one in resting if one not in refused)
    for one in moved:
        await engine.forget(one)
    return ArchiveOutcome(moved, delete, len(ids) - len(resting), len(refused))
