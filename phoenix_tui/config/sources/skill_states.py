"""Skills that the user switched off, and when each was used last; one file for all folders."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from phoenix_tui.config.shared_files import FileStamp, lock_file, stamp
from tools.files.own_files import read_file, write_file

STATES: Final = "skills.json"
"""Name of the file in the state folder."""
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_NAMES: Final = 2_000
"""Names whose last use is kept; beyond that the oldest go."""
MOST_OFF: Final = 2_000

log = logging.getLogger(__name__)


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
