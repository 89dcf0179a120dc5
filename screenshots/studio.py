"""Studio of the scenes: a separate folder, Phoenix in a terminal, and pictures of it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

from PIL import Image, ImageColor

from screenshots.cells import Cell, cells
from screenshots.painter import paint
from screenshots.relay import make_chart, make_relay
from tests.support.cli import Phoenix
from tests.support.program import Program, program

SETTLED = 0.15
"""Seconds without a byte after which a frame is whole; a running clock never gives more than a quarter."""
COLOURS = 256
Colour: TypeAlias = tuple[int, int, int]
PATIENCE = 20
"""Number of frames to wait for before the screen is taken as it is."""


@dataclass(slots=True)
class Studio:
    """One scene's folder, and the pictures taken so far."""

    folder: Path
    gallery: Path
    taken: list[str] = field(default_factory=list[str])

    def phoenix(self, url: str = "", theme: str = "") -> Phoenix:
        """A fresh installation in `~`, working in `~/src/relay`; `url` is an Anthropic server."""
        home, cwd = self.folder / "robin", self.folder / "robin" / "src" / "relay"
        if not cwd.exists():
            cwd.mkdir(parents=True)
            make_relay(cwd)
            make_chart(home / "latency.png")
        if theme:
            (home / "config.toml").write_text(f'theme = "{theme}"\n', "utf-8")
        key = {"ANTHROPIC_API_KEY": "sk-ant-picture-0123456789", "ANTHROPIC_BASE_URL": url} if url else {}
        return Phoenix(home, cwd, {"PHOENIX_MODEL": "", **key})

    async def take(self, name: str, running: Program) -> None:
        """Paint what is on the screen now."""
        for _ in range(PATIENCE):
            before = len(running.raw)
            await asyncio.sleep(SETTLED)
            if len(running.raw) == before:
                break
        screen = running.screen
        picture = paint(shown := cells(bytes(running.raw), screen.columns, screen.lines))
        reduced(picture, shown).save(self.gallery / f"{name}.png", optimize=True)
        self.taken.append(name)


def reduced(picture: Image.Image, shown: list[list[Cell]]) -> Image.Image:
    """Reduce to 256 colours, a third of the bytes: every ink and ground of a cell, and the commonest blended edges.

    Pillow's own choice of a palette would merge the rare ones, and a red sign on a screen of text is rare; its own
    search for the nearest colour makes amber orange.
    """
    named = dict.fromkeys(colour for row in shown for cell in row for colour in (cell.ground, cell.ink))
    palette = dict.fromkeys(cast("Colour", ImageColor.getrgb(colour)) for colour in named)
    counted = cast("list[tuple[int, Colour]]", picture.getcolors(picture.width * picture.height))
    edges = sorted(counted, key=lambda one: -one[0])
    for _, colour in edges:
        if len(palette) >= COLOURS:
            break
        palette[colour] = None
    colours = list(palette)[:COLOURS]
    places = {colour: place for place, colour in enumerate(colours)}
    for _, colour in edges:
        if colour not in places:
            places[colour] = min(range(len(colours)), key=lambda place: _far(colours[place], colour))
    chosen = Image.new("P", picture.size)
    chosen.putpalette([share for colour in colours for share in colour])
    raw = picture.tobytes()
    chosen.putdata([places[pixel] for pixel in zip(raw[::3], raw[1::3], raw[2::3], strict=True)])
    return chosen


def _far(one: Colour, other: Colour) -> int:
    return sum((mine - yours) ** 2 for mine, yours in zip(one, other, strict=True))


@contextmanager
def studio(gallery: Path) -> Generator[Studio]:
    """A studio whose folder goes with the block."""
    folder = Path(tempfile.mkdtemp(prefix="phoenix-pictures-"))
    try:
        yield Studio(folder, gallery)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def screen(phoenix: Phoenix, *arguments: str, columns: int = 120, rows: int = 40) -> AsyncGenerator[Program]:
    """Phoenix, ready to be typed to."""
    async with program(phoenix, *arguments, columns=columns, rows=rows) as running:
        await running.until(lambda: "? help" in running.text or "Enter resumes" in running.words, "a first screen")
        yield running
