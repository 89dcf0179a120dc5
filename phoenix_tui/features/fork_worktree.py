"""/fork --worktree: a copy of a conversation that works in a git worktree of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from engine.api.conversation import ConversationApi
from engine.executor.requests import EngineError
from engine.records.forks import ForkPlace
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.uncommitted import uncommitted
from phoenix_tui.features.worktree import existing_folder, made_words, offer_trust
from tools.clean import reveal_name
from tools.git.failure import GitFailure
from tools.git.making import Made, make_worktree
from tools.git.undoing import undo_worktree
from tools.wording import counted

FLAGS: Final = ("--worktree", "-w")
NOTE: Final = (
    "This conversation is a copy that continues in the working directory {folder}, a git worktree on the branch"
    " {branch} that began with the newest commit of {source}. The messages before it are about {source}: what was"
    " changed there and not committed is not here, so look at files again before you rely on them."
)


def worktree_name(argument: str) -> str | None:
    """The name behind `--worktree`, empty for none; None for an argument without that flag."""
    flag, _, name = argument.strip().partition(" ")
    return name.strip() if flag in FLAGS else None


async def fork_into_worktree(front: FrontEnd, conversation_id: str, folder: Path, name: str = "") -> ConversationApi:
    """Make a worktree of `folder`, then the copy in it: its working directory never changes.

    Whatever fails behind it takes a new worktree away again.

    Raises:
        EngineError: it cannot be made, and why; or there is no copy.
    """
    source = await existing_folder(folder)
    try:
        made = await make_worktree(front.services.runner, source, name)
    except GitFailure as failure:
        raise EngineError(str(failure)) from failure
    try:
        await offer_trust(front, source, made.folder)
        copy = await front.services.engine.fork(conversation_id, place=fork_place(made, source))
    except BaseException as error:
        kept = await asyncio.shield(_taken_back(front, made))
        if kept and isinstance(error, Exception):
            raise EngineError(f"{error} {kept}") from error
        raise
    front.tell(" ".join((made_words(made), *made.notes, *await _left_behind(front, source))))
    return copy


def fork_place(made: Made, source: Path) -> ForkPlace:
    """Place of a copy in a worktree, with the paragraph that tells its model about it."""
    folder, branch = reveal_name(made.folder), reveal_name(made.worktree.branch)
    return ForkPlace(made.folder, NOTE.format(folder=folder, branch=branch, source=reveal_name(source)))


async def _taken_back(front: FrontEnd, made: Made) -> str:
    """Remove a worktree without a use; a sentence where it stays."""
    try:
        await undo_worktree(front.services.runner, made)
    except GitFailure as failure:
        return str(failure)
    return ""


async def _left_behind(front: FrontEnd, source: Path) -> list[str]:
    """Sentence about what is not committed in the folder of the source, which the worktree lacks."""
    found = await uncommitted(front.services.runner, source)
    if found is None or not found.files:
        return []
    return [f"{counted(len(found.files), 'file')} in {reveal_name(source)} not committed: not in the worktree."]
