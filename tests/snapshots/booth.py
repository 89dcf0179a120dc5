"""Set of a scene: the real app over the fake engine, its screens compared with snapshots."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec.structs import replace
from rich.cells import cell_len
from textual.strip import Strip

from phoenix_tui.app import PhoenixApp
from phoenix_tui.lifecycle.launch import Services
from tests.snapshots.drawings import draw, drawing_of
from tests.snapshots.looks import meanings, written
from tests.support.fake_engine import FakeEngine, FakeOnboarding, FakeSettings, launch, services
from tests.support.shell import Shell
from tests.support.unseen import leave_unpainted
from tests.support.waiting import poll, rest

SCREENS: Final = Path(__file__).parent / "screens"
RENEW: Final = "RENEW_SNAPSHOTS"
"""The variable under which screens are stored instead of compared; `python -m tests.snapshots.renew` sets it."""
SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
ALL: Final = (SMALL, MIDDLE, LARGE)
PATIENCE: Final = 20.0
"""Seconds until a screen that is not the stored one counts as another: whatever still comes has come by then."""
HASTE: Final = 0.5
"""The same for further screens of a scene that has failed already."""
MOST_LINES: Final = 60
"""Lines of one screen's difference that are printed."""

Size = tuple[int, int]


@dataclass
class Booth:
    """One scene's home, its engine, and what was found so far."""

    folder: Path
    """Folder of its files: SCREENS / scene."""
    home: Path
    engine: FakeEngine
    taken: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    paints: ClassVar = False
    """True to paint each frame, for faults in it."""

    @property
    def cwd(self) -> Path:
        return self.engine.cwd

    @asynccontextmanager
    async def opened(self, **asked: Any) -> AsyncIterator[Shell]:
        """The app at the smallest size; `asked` are fields of the launch, `services` those of the services."""
        behind = asked.pop("services", {})
        onboarding, size = asked.pop("onboarding", FakeOnboarding()), asked.pop("size", SMALL)

        async def open_services() -> Services:
            return replace(services(self.engine, onboarding), **{"settings": FakeSettings(), **behind})

        app = PhoenixApp(launch(self.home, cwd=self.cwd, **asked), open_services)
        if not self.paints:
            leave_unpainted(app)
        async with app.run_test(size=size, notifications=True) as pilot:
            shell = Shell(app, pilot, onboarding, [], [], self.engine)
            await shell.until(lambda: shell.screen.startup.ctx_in_use)
            yield shell

    async def take(self, shell: Shell, name: str, sizes: Iterable[Size] = ALL) -> None:
        """Hold the screen to its snapshot at each size; leaves it at the smallest, and what was said is gone."""
        for columns, rows in sizes:
            await resized(shell, columns, rows)
            await self._compare(shell, f"{name}-{columns}x{rows}")
        shell.app.clear_notifications()
        await resized(shell, *SMALL)

    async def _compare(self, shell: Shell, name: str) -> None:
        self.taken.append(name)
        path, drawing = self.folder / f"{name}.txt", drawing_of(self.folder.name, name)
        if os.environ.get(RENEW):
            await rest(lambda: lines(shell))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines(shell)) + "\n", "utf-8")
            if drawing is not None:
                drawing.parent.mkdir(exist_ok=True)
                drawing.write_text(draw(shell, name), "utf-8")
            return
        stored = path.read_text("utf-8").splitlines() if path.exists() else []
        await shell.pilot.pause()
        patience = HASTE if self.differences or not stored else PATIENCE
        strips: list[Strip] = []

        def is_stored() -> bool:
            strips[:] = shell.strips
            return written(strips, meanings(shell.app.current_theme)) == stored

        if not await poll(is_stored, patience):
            self.differences.append(difference(name, stored, lines(shell)))
        if drawing is not None and not is_drawn_as(drawing, draw(shell, name)):
            self.differences.append(f"{name}: {drawing.name} is another drawing, or is not there")
        self.differences += [f"{name}: {fault}" for fault in faults(strips, shell.app.size.width)]


def is_drawn_as(drawing: Path, svg: str) -> bool:
    """True where the stored drawing is the same."""
    return drawing.exists() and drawing.read_text("utf-8") == svg


async def resized(shell: Shell, columns: int, rows: int) -> None:
    """The terminal in another size, laid out."""
    if shell.app.size != (columns, rows):
        await shell.pilot.resize_terminal(columns, rows)
        await shell.until(lambda: shell.top.size == (columns, rows))


def lines(shell: Shell) -> list[str]:
    """The screen as a snapshot has it."""
    return written(shell.strips, meanings(shell.app.current_theme))


def faults(strips: Iterable[Strip], width: int) -> list[str]:
    """Rows that are not as wide as the screen."""
    found = [(number, cell_len(strip.text)) for number, strip in enumerate(strips)]
    return [f"row {number} is {cells} cells wide" for number, cells in found if cells != width]


def difference(name: str, stored: list[str], seen: list[str]) -> str:
    """Changes, as a diff of lines."""
    if not stored:
        return f"{name}: there is no snapshot yet"
    changed = list(unified_diff(stored, seen, f"{name} (stored)", f"{name} (now)", lineterm="", n=1))
    left = len(changed) - MOST_LINES
    return "\n".join([*changed[:MOST_LINES], *([f"... {left} more lines"] if left > 0 else [])])
