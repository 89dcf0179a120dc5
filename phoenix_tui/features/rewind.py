"""Rewinding a conversation: the order of questions, the actions, and the reports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from msgspec import Struct

from engine.ports import ConversationChanges
from engine.ports.files import FilesError
from engine.rewind.rewind import CannotRewind, Done, Preview, Rewinding, RewindList, RewindPoint, RewindScope
from phoenix_tui.features.catalogue import as_message
from phoenix_tui.features.composing import join_draft
from tools.clean import clean_line
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.engine import Engine
    from engine.ports.files import BranchRow

NOTHING_SAID: Final = "There are no prompts to rewind to yet. Each message becomes one."
NAMES: Final = 3
"""Files named of those that stayed as they were."""


class OtherWay(Enum):
    """Choices beside the prompts in their list."""

    UNDO = auto()
    BRANCHES = auto()
    FINISH = auto()
    """Do the rest of a restore that a crash cut off."""
    TAKE_BACK = auto()
    """Turn that restore around."""


RewindTarget: TypeAlias = RewindPoint | OtherWay


class Instead(Enum):
    """Actions at a prompt other than rewinding."""

    SUMMARY = auto()
    """Summarize the earlier messages."""


Way: TypeAlias = RewindScope | Instead


class HowFar(Struct, frozen=True):
    """Parts to restore, and the paths of files changed by others that are overwritten."""

    way: Way
    overwrite: frozenset[bytes] = frozenset()


class RewindAsker(Protocol):
    """A front end's side of rewinding: it asks and shows. None means that the user gave up."""

    undo_keys: str
    """Keys that undo the last rewind, such as `/undo`."""
    undo_keys_over_text: str
    """The same while the composer contains a prompt."""
    branching_keys: str
    """Keys that make a branch."""

    async def which_prompt(self, found: RewindList) -> RewindTarget | None:
        """Choose the point to go back to from a list that is not empty."""
        ...

    async def how_far(self, point: RewindPoint, preview: Preview, ways: Sequence[Way]) -> HowFar | None:
        """The last look before going back."""
        ...

    async def summarize_before(self, seq: int) -> None:
        """Summarize the messages before this one, and let the user decide on the summary."""
        ...

    async def overwritten_by_undo(self, preview: Preview) -> frozenset[bytes] | None:
        """The last look before undoing: which files of others go back too."""
        ...

    async def which_branch(self, branches: Sequence[BranchRow]) -> str | None:
        """The id of the one to show."""
        ...

    async def show(self, branch: Conversation) -> None:
        """Put this one in the place of the one that is shown."""
        ...

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Report the result, or the reason of a refusal."""
        ...


class RewindCommands:
    """Rewinds of one conversation. Refusals are reported; raises StorageError."""

    def __init__(self, asker: RewindAsker, engine: Engine, conversation: Conversation, rewinding: Rewinding) -> None:
        self._asker = asker
        self._engine = engine
        self._conversation = conversation
        self._rewinding = rewinding

    async def rewind(self) -> None:
        """Choose a prompt of this conversation and go back to before it, or one of the other ways."""
        if self._cannot():
            return
        try:
            found = await self._rewinding.points(self._conversation.record)
            if found.points or found.takeback or found.unfinished:
                await self._follow(await self._asker.which_prompt(found), found)
            else:
                self._asker.tell(NOTHING_SAID)
        except (CannotRewind, FilesError) as error:
            self._asker.tell(str(error), bad=True)

    async def undo(self) -> None:
        """Take the last way back, where there is one."""
        if self._cannot():
            return
        try:
            if (await self._rewinding.points(self._conversation.record)).takeback is None:
                self._asker.tell("There is no rewind to undo. /rewind starts one.")
            else:
                await self._undo()
        except (CannotRewind, FilesError) as error:
            self._asker.tell(str(error), bad=True)

    async def branches(self) -> None:
        """Choose one of the branches and show it in place of this."""
        if self._cannot():
            return
        here = self._conversation
        branches = await self._rewinding.branches(here.record)
        if len(branches) < 2:
            self._asker.tell(f"This conversation has no branches; {self._asker.branching_keys} makes one.")
            return
        chosen = await self._asker.which_branch(branches)
        if not chosen or chosen == here.id:
            return
        try:
            await self._arrive(await self._rewinding.switch(here.record, here.state, chosen))
        except (CannotRewind, FilesError) as error:
            self._asker.tell(str(error), bad=True)

    def _cannot(self) -> bool:
        reason = self._conversation.read_only or self._rewinding.why_not(self._conversation.state)
        if reason:
            self._asker.tell(reason, bad=True)
        return bool(reason)

    async def _follow(self, order: RewindTarget | None, found: RewindList) -> None:
        match order:
            case None:
                return
            case RewindPoint():
                await self._go_back(order, found)
            case OtherWay.UNDO:
                await self._undo()
            case OtherWay.BRANCHES:
                await self.branches()
            case OtherWay.FINISH | OtherWay.TAKE_BACK:
                take_back = order is OtherWay.TAKE_BACK
                await self._arrive(await self._rewinding.finish(self._conversation.record, take_back=take_back))

    async def _go_back(self, point: RewindPoint, found: RewindList) -> None:
        here = self._conversation
        preview = await self._rewinding.preview(here.record, point.seq)
        ways: list[Way] = [RewindScope.CONVERSATION] if preview.refusal or not preview.files else list(RewindScope)
        if here.record.context_start_seq < point.seq and point is not found.points[-1]:
            ways.append(Instead.SUMMARY)
        choice = await self._asker.how_far(point, preview, ways)
        if choice is None:
            return
        match choice.way:
            case Instead.SUMMARY:
                await self._asker.summarize_before(point.seq)
            case RewindScope() as scope:
                await self._arrive(
                    await self._rewinding.rewind(here.record, here.state, point.seq, scope, choice.overwrite)
                )

    async def _undo(self) -> None:
        here = self._conversation
        overwrite = await self._asker.overwritten_by_undo(await self._rewinding.preview_undo(here.record))
        if overwrite is not None:
            await self._arrive(await self._rewinding.undo(here.record, here.state, overwrite), undone=True)

    async def _arrive(self, done: Done, *, undone: bool = False) -> None:
        """Show the other branch, with the removed prompt in the composer, and report the files."""
        here = self._conversation
        if done.conversation_id != here.id:
            branch = await self._engine.open(done.conversation_id)
            if done.text or done.image_ids:
                await branch.change(ConversationChanges(draft=join_draft(as_message(done.text), done.image_ids)))
            await self._asker.show(branch)
            if not any(job.running for job in here.jobs.all()):
                await self._engine.forget(here.id)
        self._asker.tell(self._outcome(done, undone=undone))
        if done.problems:
            self._asker.tell(_name_unchanged(done), bad=True)

    def _outcome(self, done: Done, *, undone: bool) -> str:
        files = f"{pluralize(done.restored, 'file')} restored. " if done.restored else ""
        keys = self._asker.undo_keys
        if done.conversation_id != self._conversation.id:
            keys = self._asker.undo_keys_over_text if done.text or done.image_ids else keys
            if undone:
                return f"The rewind is undone. {files or 'Files are unchanged. '}{keys} rewinds again."
            return f"{files or 'Files are unchanged. '}You are in a new branch; {keys} returns to the previous one."
        if files:
            undoing = "The rewind is undone. " if undone else ""
            return f"{undoing}{files}The agent is told with your next message. {keys} undoes this."
        return "No file changed."


def _name_unchanged(done: Done) -> str:
    """Files that stayed unchanged, with the reasons."""
    names = (f"{clean_line(one.path.decode('utf-8', 'replace'))} ({one.problem})" for one in done.problems[:NAMES])
    more = f" and {len(done.problems) - NAMES} more" if len(done.problems) > NAMES else ""
    return f"Not restored: {', '.join(names)}{more}."


def others_of(preview: Preview) -> frozenset[bytes]:
    """The files that were changed by others and that could be overwritten."""
    return frozenset(one.change.path for one in preview.files if one.conflict and one.possible)
