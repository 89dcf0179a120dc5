"""Git worktrees of conversations: begin or continue in one, list, merge and remove them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import is_busy
from engine.records import ForkPlace
from phoenix_tui.features.changes import find_uncommitted
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.trust import folder_in_view
from phoenix_tui.text.worktree_text import count_uncommitted, facts_of, repository_beside
from tools.clean import reveal_name
from tools.fresh_ids import slug_of
from tools.git.ending import Standing, merge_worktree, remove_worktree, standing_of, standings
from tools.git.making import Made, make_worktree, undo_worktree
from tools.git.repository import PREFIX, GitFailure
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from tools.contract import ProcessRunner


BASE: Final = "--base"
NEW: Final = "+"
NEW_WORDS: Final = "a new one; its name is asked"
NONE_HERE: Final = "There are no worktrees of this repository; /worktree NAME makes one."
WHICH: Final = "This conversation is in no worktree of Phoenix; name one, as in /worktree {word} NAME."


async def worktree(front: FrontEnd, argument: str) -> None:
    """Begin in a worktree, or merge, remove or list them; without an argument, ask. Raises EngineError."""
    word, _, name = argument.strip().partition(" ")
    action = {"": _choose, "merge": _merge, "remove": _remove, "list": _list}.get(word)
    try:
        if action is None:
            await _begin(front, argument)
        else:
            await action(front, name.strip())
    except GitFailure as failure:
        raise EngineError(str(failure)) from failure


async def begin_in_fresh_worktree(front: FrontEnd) -> None:
    """Make a worktree with a name of its own choice, and a conversation in it. Raises EngineError."""
    try:
        await _begin(front, "")
    except GitFailure as failure:
        raise EngineError(str(failure)) from failure


async def _choose(front: FrontEnd, _: str) -> None:
    """Ask for a worktree that exists, or for the name of a new one."""
    found = await standings(front.services.runner, await _source(front))
    options = [Option(one.worktree.name, one.worktree.name, facts_of(one)) for one in found[: front.most_options]]
    chosen = (
        await front.pick("New conversation in which worktree?", [Option(NEW, NEW_WORDS), *options]) if found else NEW
    )
    if chosen == NEW:
        chosen = (await front.ask_line("Name of the new worktree, and of its branch phoenix/NAME")).strip()
    if chosen:
        await _begin(front, chosen)


async def worktree_at_start(runner: ProcessRunner, folder: Path, name: str, base: str) -> tuple[Made, tuple[str, ...]]:
    """Make the worktree of `--worktree` before anything else, and sentences about it. Raises GitFailure."""
    made = await make_worktree(runner, folder, name, base)
    return made, (describe_made(made), *made.notes)


async def _begin(front: FrontEnd, argument: str) -> None:
    """Make a worktree of the folder in view, then a conversation in it: its working directory never changes."""
    name, _, base = argument.partition(BASE)
    source = await _source(front)
    made = await make_worktree(front.services.runner, source, name.strip(), base.strip())
    front.tell(" ".join((describe_made(made), *made.notes)))
    await offer_trust(front, source, made.folder)
    empty = front.conversation is None
    options = front.launch.options(
        front.model, front.mode if empty else front.launch.permission_mode, front.sandbox if empty else None
    )
    created = await front.services.engine.create(replace(options, cwd=made.folder))
    await front.open(created.id)


async def offer_trust(front: FrontEnd, source: Path, folder: Path) -> None:
    """Ask whether files count in the worktree that are byte for byte those of a trusted folder: trust is per folder."""
    if front.services.trust is None:
        return
    same = await front.services.trust.same_as(source, folder)
    if same is None:
        return
    names = ", ".join(sorted({reveal_name(file.path.name) for file in same.files}))
    question = f"Use {names} in the worktree too? They are the same as in {reveal_name(source)}, which you trust."
    if await front.confirm(question, "use them there too", "leave them out"):
        await front.services.trust.accept(same)


async def _list(front: FrontEnd, _: str) -> None:
    found = await standings(front.services.runner, await _source(front))
    if not found:
        front.tell(NONE_HERE)
        return
    options = [Option(one.worktree.name, one.worktree.name, facts_of(one)) for one in found[: front.most_options]]
    if chosen := await front.pick("New conversation in which worktree?", options):
        await _begin(front, chosen)


async def _merge(front: FrontEnd, name: str) -> None:
    found = await _find_named(front, name, "merge")
    branch = found.worktree.branch
    words = count_uncommitted(found)
    left = f" Not committed, and so not merged: {words}." if words else ""
    target = f"{found.base_branch}" if found.base_branch else "its base"
    question = f"Merge {pluralize(found.ahead, 'commit')} of {branch} into {reveal_name(target)}?{left}"
    if found.ahead and found.base_branch and not await front.confirm(question, "merge them", "do not merge"):
        return
    merged = await merge_worktree(front.services.runner, found)
    how = "fast-forwarded to" if merged.fast_forward else "merged with"
    where = reveal_name(merged.folder)
    front.tell(f"{reveal_name(merged.branch)} in {where} was {how} {branch}. `{merged.undo}` there undoes it.")


async def _remove(front: FrontEnd, name: str) -> None:
    found = await _find_named(front, name, "remove")
    folder = found.worktree.folder
    _refuse_in_use(front, folder)
    if (
        found.worktree.complete
        and found.known
        and not await front.confirm(_remove_question(found), "remove the worktree", "keep it")
    ):
        return
    await remove_worktree(front.services.runner, found)
    front.tell(f"{reveal_name(folder)} was removed.{_describe_kept(found) if found.worktree.complete else ''}")


def _describe_kept(found: Standing) -> str:
    """Sentence about what a removal left, and the way back."""
    name, branch = found.worktree.name, found.worktree.branch
    if found.checked_out == branch:
        return f" The branch {branch} is kept: /worktree {name} restores all but ignored files."
    changes = f" What was not committed is in refs/phoenix/removed/{name}." if found.dirty else ""
    return f" The branches {reveal_name(found.checked_out)} and {branch} are kept.{changes}"


def _remove_question(found: Standing) -> str:
    """Question before a removal, with everything that is in no other place."""
    words = count_uncommitted(found)
    unmerged = f"{pluralize(found.ahead, 'commit')} not merged" if found.ahead else ""
    facts = ", ".join(filter(None, (unmerged, f"{words} not committed" if words else "")))
    said = f" It has {facts}; both can be restored." if facts else ""
    return f"Remove the worktree {found.worktree.name}?{said} Ignored files, such as build output, are deleted."


def _refuse_in_use(front: FrontEnd, folder: Path) -> None:
    for one in front.services.engine.live():
        if not one.record.cwd.is_relative_to(folder):
            continue
        if is_busy(one.state) or any(job.running for job in one.jobs.all()):
            title = reveal_name(one.record.title or "New conversation")
            raise EngineError(f"{title} works in this worktree; stop it first, and its background commands.")


async def _source(front: FrontEnd) -> Path:
    """The folder in view; of a worktree that was removed the repository beside it."""
    return await existing_folder(folder_in_view(front))


async def existing_folder(folder: Path) -> Path:
    """A folder; the repository beside it where it was in a worktree that was removed."""
    beside = repository_beside(folder)
    return folder if beside is None or await asyncio.to_thread(folder.exists) else beside


async def _find_named(front: FrontEnd, name: str, word: str) -> Standing:
    """The worktree of this name, without one that of the conversation in view."""
    runner, folder = front.services.runner, await _source(front)
    if not name:
        found = await standing_of(runner, folder)
        if found is None:
            raise GitFailure(WHICH.format(word=word))
        return found
    slug = slug_of(name.removeprefix(PREFIX))
    for found in await standings(runner, folder):
        if found.worktree.name in {slug, name}:
            return found
    raise GitFailure(f"There is no worktree {reveal_name(name)}; /worktree list shows them.")


def describe_made(made: Made) -> str:
    """Sentence about a worktree that was made or taken up."""
    worktree_made = made.worktree
    origin = worktree_made.origin
    of = f" of {reveal_name(origin.branch)}" if origin is not None and origin.branch else ""
    return f"Worktree {worktree_made.name}: branch {worktree_made.branch}{of}, in {reveal_name(worktree_made.folder)}."


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


async def fork_into_worktree(front: FrontEnd, conversation_id: str, folder: Path, name: str = "") -> Conversation:
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
        kept = await asyncio.shield(_undo_making(front, made))
        if kept and isinstance(error, Exception):
            raise EngineError(f"{error} {kept}") from error
        raise
    front.tell(" ".join((describe_made(made), *made.notes, *await _name_uncommitted(front, source))))
    return copy


def fork_place(made: Made, source: Path) -> ForkPlace:
    """Place of a copy in a worktree, with the paragraph that tells its model about it."""
    folder, branch = reveal_name(made.folder), reveal_name(made.worktree.branch)
    return ForkPlace(made.folder, NOTE.format(folder=folder, branch=branch, source=reveal_name(source)))


async def _undo_making(front: FrontEnd, made: Made) -> str:
    """Remove a worktree without a use; a sentence where it stays."""
    try:
        await undo_worktree(front.services.runner, made)
    except GitFailure as failure:
        return str(failure)
    return ""


async def _name_uncommitted(front: FrontEnd, source: Path) -> list[str]:
    """Sentence about what is not committed in the folder of the source, which the worktree lacks."""
    found = await find_uncommitted(front.services.runner, source)
    if found is None or not found.files:
        return []
    return [f"{pluralize(len(found.files), 'file')} in {reveal_name(source)} not committed: not in the worktree."]
