"""Skills and commands of the folders that are worked in: catalogues, the states that the user gave skills, the list in
the prompt, and the tool that loads them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.ports.extensions import (
    EMPTY,
    ExtensionPrompt,
    Invocable,
    InvocableCatalogue,
    WaitingInvocable,
    choose_skills,
)
from engine.records import ConversationRecord
from phoenix_tui.config.paths import FileStamp, lock_file, stamp
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources
from phoenix_tui.features.catalogue import ALIASES, BY_NAME
from tools.contract import ProcessRunner, Tool
from tools.files.own_files import read_file, write_file

if TYPE_CHECKING:
    from phoenix_tui.config.sources.catalogues import CatalogueReader, NestedSources


STATES: Final = "skills.json"
"""Name of the file in the state folder."""
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_NAMES: Final = 2_000
"""Names whose last use is kept; beyond that the oldest go."""
MOST_OFF: Final = 2_000


class SkillStates(Struct, eq=False):
    """skills.json: read again when another process wrote it. A file that cannot be read has nothing."""

    path: Path
    keeps: bool = True
    """False: changes hold until the program ends."""
    _stamp: FileStamp = None
    _off: frozenset[str] = frozenset()
    _used: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def off(self) -> frozenset[str]:
        """Files of the skills that are switched off."""
        self._refresh()
        return self._off

    @property
    def used(self) -> dict[str, float]:
        """Unix time of the last use, by name."""
        self._refresh()
        return self._used

    def switch(self, skill: Path, *, on: bool) -> None:
        """Switch a skill on or off.

        Raises:
            OSError: it cannot be written.
        """
        name = str(skill)
        self._change(lambda off, used: (off - {name} if on else off | {name}, used))

    def note_use(self, name: str, now: float) -> None:
        """Remember a use; one that cannot be written is forgotten, and the log says so."""
        try:
            self._change(lambda off, used: (off, {**used, name: now}))
        except OSError as error:
            log.warning("%s cannot be written: %s", self.path, error)

    def _change(
        self, change: Callable[[frozenset[str], dict[str, float]], tuple[frozenset[str], dict[str, float]]]
    ) -> None:
        if not self.keeps:
            self._off, self._used = change(self._off, self._used)
            return
        with lock_file(self.path):
            self._refresh()
            off, used = change(self._off, self._used)
            newest = sorted(used.items(), key=lambda one: one[1])[-MOST_NAMES:]
            document = {"off": sorted(off)[:MOST_OFF], "used": dict(sorted(newest))}
            write_file(self.path, json.dumps(document, indent=1) + "\n")
            self._refresh()

    def _refresh(self) -> None:
        now = stamp(self.path) if self.keeps else None
        if now == self._stamp:
            return
        self._stamp = now
        try:
            document: object = json.loads(read_file(self.path, MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            document = {}
        table = cast("dict[str, object]", document) if isinstance(document, dict) else {}
        off, used = table.get("off"), table.get("used")
        self._off = frozenset(str(one) for one in cast("list[object]", off)) if isinstance(off, list) else frozenset()
        times = cast("dict[str, object]", used).items() if isinstance(used, dict) else ()
        self._used = {name: float(time) for name, time in times if isinstance(time, int | float)}


WAIT: Final = 0.25
"""Seconds that a request waits for a look; it takes 1 ms while nothing has changed, and 100 for 550 new files."""
FIRST_WAIT: Final = 2.0
"""Seconds for the first look at a folder, on a machine that is busy."""
LONGEST_WAIT: Final = 5.0
"""Seconds that a user's call or completion waits."""
MOST_FOLDERS: Final = 50
CALLED: Final = frozenset({SourceKind.SKILL, SourceKind.COMMAND})
SECTION: Final = "Skills"
TOOL: Final = "skill"

log = logging.getLogger(__name__)


class _Kept(Struct, frozen=True):
    """A catalogue and what it was made of."""

    sources: TrustedSources
    off: frozenset[str]
    nested: list[NestedSources]
    catalogue: InvocableCatalogue
    folders: tuple[Path, ...]


class InvocableSource(Struct, eq=False):
    """Answers from memory; looks in a thread. One per process."""

    sources: ProjectSources
    states: SkillStates
    runner: ProcessRunner
    attended: bool = True
    """False where no person can answer a question."""
    _offered: frozenset[str] | None = None
    """Names of the skills that models are offered; None: all."""
    _kept: dict[Path, _Kept] = field(default_factory=dict[Path, _Kept])
    _looking: dict[Path, asyncio.Task[None]] = field(default_factory=dict[Path, "asyncio.Task[None]"])
    _met: dict[Path, set[Path]] = field(default_factory=dict[Path, set[Path]])
    """Folders below each working directory whose files were read."""
    _reader: list[CatalogueReader] = field(default_factory=list["CatalogueReader"])
    """Empty until the first look: its modules are loaded there."""

    def catalogue(self, folder: Path) -> InvocableCatalogue:
        """The newest catalogue of a folder, from memory."""
        kept = self._kept.get(folder)
        return kept.catalogue if kept is not None else EMPTY

    async def refresh(self, record: ConversationRecord) -> InvocableCatalogue:
        """Look at the files again, in a thread and within a bound; the last catalogue where that takes longer."""
        await self.look(record.cwd)
        return self.catalogue(record.cwd)

    async def look(self, folder: Path, seconds: float = LONGEST_WAIT) -> None:
        """Look at a folder, and wait so long at most; one look at a time, which goes on behind it."""
        task = self._looking.get(folder)
        if task is None:
            self._looking[folder] = task = asyncio.create_task(asyncio.to_thread(self._look, folder))
            task.add_done_callback(lambda _: self._looking.pop(folder, None))
        await asyncio.wait((task,), timeout=seconds)

    def note_use(self, skill: Invocable) -> None:
        """Remember that a skill was used, in a thread."""
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, self.states.note_use, skill.name, time.time())

    @property
    def used(self) -> Mapping[str, float]:
        """Unix time of the last use of each skill, by name."""
        return self.states.used

    async def switch(self, skill: Invocable, *, on: bool) -> None:
        """Switch a skill on or off, in every folder.

        Raises:
            EngineError: it cannot be written.
        """
        try:
            await asyncio.to_thread(partial(self.states.switch, skill.path, on=on))
        except OSError as error:
            raise EngineError(f"{self.states.path} cannot be written: {error.strerror or error}.") from error

    def offer(self, names: Sequence[str] | None) -> None:
        """Offer models no other skills than these; None: every one."""
        self._offered = None if names is None else frozenset(names)

    def list_offered(self, folder: Path) -> InvocableCatalogue:
        """The newest catalogue of a folder with the skills that models are offered, from memory."""
        catalogue = self.catalogue(folder)
        if self._offered is None:
            return catalogue
        return replace(catalogue, skills=choose_skills(catalogue.skills, self._offered))

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """The tool `skill`, where a model may load one."""
        catalogue = self.list_offered(record.cwd)
        if record.agent is not None or not any(skill.for_models for skill in catalogue.skills):
            return {}
        from engine.extensions.skills import SkillTool  # noqa: PLC0415 - only where there are skills

        listed = self._list_skills(catalogue, record) if record.system_prompt else ""
        return {TOOL: SkillTool(catalogue, self, record.id, self.attended, listed)}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """The list of skills."""
        catalogue = self.list_offered(record.cwd)
        text = self._list_skills(catalogue, record)
        return (ExtensionPrompt(SECTION, text, "skills", tool=TOOL),) if text else ()

    @staticmethod
    def _list_skills(catalogue: InvocableCatalogue, record: ConversationRecord) -> str:
        """The list of skills as its section has it, or the tool where a given system prompt leaves no sections."""
        if not catalogue.skills:
            return ""
        from engine.extensions.skills import skill_list  # noqa: PLC0415 - only where there are skills

        return skill_list(catalogue.skills, record.context_window, catalogue.used)

    async def prepare(self, record: ConversationRecord) -> None:
        """Look at the files again before a request, in a thread where they have changed."""
        folder = record.cwd
        kept = self._kept.get(folder)
        is_same = kept is not None and kept.sources is self.sources.current(folder) and not self._met.get(folder)
        if is_same and folder not in self._looking and self.sources.is_quick(folder):
            self._look(record.cwd)
            return
        await self.look(record.cwd, WAIT if record.cwd in self._kept else FIRST_WAIT)

    def close_conversation(self, conversation_id: str) -> None:
        """Do nothing: nothing is held for it."""

    def folders(self, record: ConversationRecord) -> Sequence[Path]:
        """Folders of the skills, whose files a model reads."""
        kept = self._kept.get(record.cwd)
        return kept.folders if kept is not None else ()

    def note_read(self, record: ConversationRecord, paths: Sequence[Path]) -> None:
        """Remember folders whose files were read: their skills join with the next look."""
        from phoenix_tui.config.sources.catalogues import MOST_MET, list_met_folders  # noqa: PLC0415 - behind a tool

        met = self._met.setdefault(record.cwd, set())
        met |= set(islice(list_met_folders(record.cwd, paths), MOST_MET - len(met)))

    async def accept(self, folder: Path, waiting: WaitingInvocable) -> None:
        """Accept a skill of a subfolder as it was at the last look.

        Raises:
            EngineError: the answer cannot be written.
        """
        try:
            await asyncio.to_thread(self._accept, folder, waiting)
        except OSError as error:
            raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error

    def _accept(self, folder: Path, waiting: WaitingInvocable) -> None:
        from phoenix_tui.config.sources.catalogues import accept_nested  # noqa: PLC0415 - rare

        kept = self._kept.get(folder)
        unit = waiting.path.parent if waiting.path is not None else None
        files = [file for one in kept.nested for file in one.waiting if file.unit == unit] if kept is not None else []
        if files:
            accept_nested(self.sources, files[0].unit.parents[2], files)

    def _look(self, folder: Path) -> None:
        """Make the catalogue where something has changed; a folder that is gone keeps the last."""
        try:
            found = self.sources.look(folder)
        except OSError as error:
            log.info("%s cannot be looked at: %s", folder, error)
            return
        off, kept, nested = self.states.off, self._kept.get(folder), self._find_nested(folder)
        if kept is not None and kept.sources is found and (kept.off, kept.nested) == (off, nested):
            return
        if not nested and not any(file.kind in CALLED for file in (*found.files, *found.waiting)):
            self._kept[folder] = _Kept(
                found, off, nested, InvocableCatalogue(), ()
            )  # most folders: no module is loaded
            return
        if not self._reader:
            from phoenix_tui.config.sources.catalogues import CatalogueReader  # noqa: PLC0415 - behind the first frame

            self._reader.append(CatalogueReader(frozenset({*BY_NAME, *ALIASES})))
        catalogue = self._reader[0].read(found, off, dict(self.states.used), nested)
        if len(self._kept) >= MOST_FOLDERS:
            self._kept.clear()
        folders = tuple(dict.fromkeys(skill.folder.resolve() for skill in catalogue.skills))
        self._kept[folder] = _Kept(found, off, nested, catalogue, folders)

    def _find_nested(self, folder: Path) -> list[NestedSources]:
        met = self._met.get(folder)
        if not met:
            return []
        from phoenix_tui.config.sources.catalogues import find_nested_skills  # noqa: PLC0415 - rare

        return find_nested_skills(self.sources, folder, tuple(met))
