"""Trust in the files that extend Phoenix in a folder: what both front ends show, ask and say unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.executor.requests import Activity, EngineError
from engine.machine.states import is_busy
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, SourceState
from phoenix_tui.features.front_end import TAKE, FrontEnd, ListPage, Option, PageAction, PageRow
from phoenix_tui.text.trust_text import REACH, command_line, counts, join_words, notice, short_name
from tools.clean import reveal, reveal_name
from tools.wording import pluralize

if TYPE_CHECKING:
    from phoenix_tui.features.trust_board import TrustBoard

NO_FILES: Final = (
    "Nothing extends Phoenix in this folder: no skills, commands, agents, hooks or servers. Such files are used after "
    "your yes here; .claude/skills/NAME/SKILL.md is one."
)
OWN_HERE: Final = "Hooks and servers that you defined yourself start in this folder."
OWN_APART: Final = (
    "Hooks and servers that you defined yourself start in a folder of their own, so that none runs what lies here."
)
DIFFERING: Final = frozenset({SourceState.CHANGED, SourceState.NEW, SourceState.GONE})
"""States of a file that the user has not accepted as it is; the first such file is chosen."""
LONGEST_NAME: Final = 32
"""Characters of a path in its row; its end tells more than its beginning."""
AFTER_A_PROMPT: Final = 0.4
"""Seconds in which a prompt typed ahead goes out before the first look: a second thread would hold it up."""

AFTER_A_REQUEST: Final = 0.05
"""Seconds in which a request goes out before the look beside it."""


def trust_of(front: FrontEnd) -> TrustBoard:
    """The trust of this start. Raises EngineError where there is none."""
    if front.services.trust is None:
        raise EngineError("There is no trust to show here.")
    return front.services.trust


def folder_in_view(front: FrontEnd) -> Path:
    """The working directory of the conversation in view, or of the next one."""
    return front.conversation.record.cwd if front.conversation is not None else front.launch.cwd


async def trust_in_view(front: FrontEnd) -> SourceReport:
    """Look at the folder in view. Raises EngineError."""
    return await trust_of(front).look(folder_in_view(front))


def standing(report: SourceReport) -> str:
    """The user's answer and what it leads to, in one sentence."""
    if not report.entries:
        return OWN_HERE if report.trusted else OWN_APART
    waiting, used = report.waiting(), [one for one in report.entries if one.state is SourceState.USED]
    if not waiting:
        return f"All are used: {join_words(counts(used))}." if used else ""
    if report.refused:
        return "Not used, by your answer."
    if not report.trusted:
        starts = any(entry.commands for entry in waiting)
        words = "Not used yet. Whoever can change these files decides what runs on this computer."
        return f"{words} {REACH}" if starts else words
    return notice(report).partition(";")[0] + "."


async def show_trust(front: FrontEnd, _: str) -> None:
    """Show the files that extend Phoenix in the folder in view. Raises EngineError."""
    await front.show(TrustPage(front).read)


class TrustPage:
    """Files that extend Phoenix in a folder, by their power: read, all used, or none of them."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._report: SourceReport | None = None

    async def read(self) -> ListPage:
        """List the files as the last answer left them."""
        report = self._report = self._report or await trust_in_view(self._front)
        differing = (str(place) for place, entry in enumerate(report.entries) if entry.state in DIFFERING)
        accept = PageAction(partial(self._answer, report, trusted=True), "trust_yes", "use all of them")
        refuse = PageAction(partial(self._answer, report, trusted=False), "trust_no", "use none of them")
        actions = [accept, refuse, PageAction(partial(self._choose, report), words="show one", repeats=True)]
        if not report.entries:
            actions = [
                replace(accept, words="start them here"),
                replace(refuse, words="start them in a folder of their own"),
            ]
        return ListPage(
            "Extensions of this folder",
            tuple(self._rows(report)),
            (("trust_yes", "uses all"), ("trust_no", "none"), (TAKE, "opens")),
            NO_FILES,
            tuple(filter(None, (standing(report),))),
            outcome="for notes",
            actions=tuple(actions),
            current=next(differing, ""),
            menu="Files of this folder:",
            name_cells=LONGEST_NAME,
            cut="Enter shows the file",
        )

    def _rows(self, report: SourceReport) -> Iterator[PageRow]:
        """Rows by the power of their files."""
        keyed = [(str(place), entry) for place, entry in enumerate(report.entries)]
        groups = dict.fromkeys(_name_group(entry) for entry in report.entries)
        for group, (key, entry) in product(groups, keyed):
            if _name_group(entry) == group:
                yield PageRow(
                    group,
                    key,
                    short_name(entry.name, LONGEST_NAME),
                    _describe(entry),
                    entry.state.value,
                    about=(reveal_name(entry.name), *(command_line(one) for one in entry.commands)),
                    spoken=_speak(entry),
                    actions=(PageAction(partial(self._show, report, entry), f"{TAKE} trust_show"),),
                )

    async def _show(self, report: SourceReport, entry: SourceEntry) -> str:
        """Show a file, or its difference, nothing of it hidden."""
        text = await trust_of(self._front).text(report, entry)
        self._front.read(f"{reveal_name(entry.name)}, {entry.state.value}", _reveal_lines(text))
        return ""

    async def _choose(self, report: SourceReport) -> str:
        """Read out the file whose number is typed."""
        options = [Option(str(place), _speak(entry)) for place, entry in enumerate(report.entries)]
        if chosen := await self._front.pick("Files", options):
            entry = report.entries[int(chosen)]
            text = await trust_of(self._front).text(report, entry)
            self._front.read(reveal_name(entry.name), _reveal_lines(text))
        return ""

    async def _answer(self, report: SourceReport, *, trusted: bool) -> str:
        """Keep the answer about the files as they are shown."""
        self._report = after = await trust_of(self._front).answer(report, trusted=trusted)
        if not report.shown:
            return OWN_HERE if trusted else OWN_APART
        if not trusted:
            return "None of these files is used. They are asked about again when one changes."
        if waiting := after.waiting():
            return f"Accepted as shown; {pluralize(len(waiting), 'file')} changed meanwhile and not used."
        return f"Used from now on: {join_words(counts(after.entries))}."


def _describe(entry: SourceEntry) -> str:
    """Kind of a file, or what it starts, beside its name."""
    if entry.state is SourceState.LEFT_OUT:
        return reveal_name(entry.why)
    if entry.commands:
        return " · ".join(command_line(command) for command in entry.commands)
    return entry.kind.value if entry.kind is not None else ""


def _speak(entry: SourceEntry) -> str:
    return f"{reveal_name(entry.name)}, {entry.state.value}: {_describe(entry)}".removesuffix(": ")


def _reveal_lines(text: str) -> str:
    return "\n".join(reveal(line) for line in text.split("\n"))


def _name_group(entry: SourceEntry) -> str:
    """Heading above an entry."""
    return f"{entry.group.value[0].upper()}{entry.group.value[1:]}" if entry.group is not None else "Left out"


class SourceWatch:
    """Looks at the start, when a conversation begins to work and when asked; says once what is not used.

    No request waits for a look: it runs in a thread beside the request.
    """

    def __init__(self, front: FrontEnd, show: Callable[[str], object] | None = None) -> None:
        """`show`: shows the notice of the newest look in place of the one before; empty where all is used."""
        self._front = front
        self._show = show or self._tell
        self._busy: set[str] = set()
        """Conversations at work."""
        self._told: dict[Path, str] = {}
        self._looking: dict[Path, asyncio.Task[None]] = {}

    def note_activity(self, activity: Activity) -> None:
        """Look at the folder of a conversation that begins to work."""
        conversation_id = activity.summary.id
        if not is_busy(activity.state):
            self._busy.discard(conversation_id)
        elif conversation_id not in self._busy:
            self._busy.add(conversation_id)
            self.look(activity.summary.cwd, AFTER_A_REQUEST)

    def look(self, folder: Path, after: float = 0.0) -> None:
        """Look at a folder soon, or `after` some seconds; one that is being looked at is not looked at twice."""
        if folder not in self._looking:
            self._looking[folder] = task = asyncio.create_task(self._look(folder, after))
            task.add_done_callback(lambda _: self._looking.pop(folder, None))

    def notice_of(self, folder: Path) -> str:
        """The notice of the newest look at a folder."""
        return self._told.get(folder, "")

    def close(self) -> None:
        """Look no more."""
        for task in list(self._looking.values()):
            task.cancel()

    async def _look(self, folder: Path, after: float) -> None:
        await asyncio.sleep(after)
        try:
            report = await trust_of(self._front).look(folder)
        except EngineError:  # a folder that is gone; `/trust` says so
            return
        words = notice(report)
        if self.notice_of(folder) != words:
            self._told[folder] = words
            self._show(words)

    def _tell(self, words: str) -> None:
        if words:
            self._front.tell(words)
