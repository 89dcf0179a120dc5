"""Trust in the files that extend Phoenix in a folder: what both front ends show, ask and say unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from engine.executor.requests import Activity, EngineError
from engine.machine.states import is_busy
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, SourceState
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.service_interfaces import TrustApi
from phoenix_tui.text.trust_text import REACH, command_line, counts, join_words, notice
from tools.clean import reveal, reveal_name
from tools.wording import counted

NO_FILES: Final = "Nothing extends Phoenix in this folder: no skills, commands, agents, hooks or servers."
OWN_HERE: Final = "Hooks and servers that you defined yourself start in this folder."
OWN_APART: Final = (
    "Hooks and servers that you defined yourself start in a folder of their own, so that none runs what lies here."
)
AFTER_A_PROMPT: Final = 0.4
"""Seconds in which a prompt typed ahead goes out before the first look: a second thread would hold it up."""

AFTER_A_REQUEST: Final = 0.05
"""Seconds in which a request goes out before the look beside it."""


def trust_of(front: FrontEnd) -> TrustApi:
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


def describe_source(entry: SourceEntry) -> str:
    """Kind of a file, or what it starts, beside its name."""
    if entry.state is SourceState.LEFT_OUT:
        return reveal_name(entry.why)
    if entry.commands:
        return " · ".join(command_line(command) for command in entry.commands)
    return entry.kind.value if entry.kind is not None else ""


async def text_of(front: FrontEnd, report: SourceReport, entry: SourceEntry) -> str:
    """Text or difference of one file, nothing of it hidden. Raises EngineError."""
    text = await trust_of(front).text(report, entry)
    return "\n".join(reveal(line) for line in text.split("\n"))


async def answer(front: FrontEnd, report: SourceReport, *, trusted: bool) -> tuple[SourceReport, str]:
    """Keep the answer about the files of `report`; the state then, and a sentence. Raises EngineError."""
    after = await trust_of(front).answer(report, trusted=trusted)
    if not report.shown:
        return after, OWN_HERE if trusted else OWN_APART
    if not trusted:
        return after, "None of these files is used. They are asked about again when one changes."
    if waiting := after.waiting():
        return after, f"Accepted as shown; {counted(len(waiting), 'file')} changed meanwhile and not used."
    return after, f"Used from now on: {join_words(counts(after.entries))}."


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

    def noticed(self, activity: Activity) -> None:
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

    def shown(self, folder: Path) -> str:
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
        if self.shown(folder) != words:
            self._told[folder] = words
            self._show(words)

    def _tell(self, words: str) -> None:
        if words:
            self._front.tell(words)


def sections(entries: Sequence[SourceEntry]) -> dict[str, list[SourceEntry]]:
    """Entries by the heading above them, in their order."""
    found: dict[str, list[SourceEntry]] = {}
    for entry in entries:
        heading = f"{entry.group.value[0].upper()}{entry.group.value[1:]}" if entry.group is not None else "Left out"
        found.setdefault(heading, []).append(entry)
    return found
