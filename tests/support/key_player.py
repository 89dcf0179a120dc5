"""Plays a script of keys into a running app over a fake engine whose store can be locked, and collects the texts."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events
from textual.geometry import Size

from engine.machine.states import Idle
from phoenix_tui.features.composing import parse_draft
from phoenix_tui.terminal.input import TerminalInput
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.fake_queue import FakeQueue
from tests.support.key_oracle import Texts
from tests.support.key_scripts import ENDLESS, OPENERS, RESIZES, Pause, Script, Step, Weather, some_size
from tests.support.shell import Shell
from tests.support.waiting import poll

PNG: Final = b"\x89PNG\r\n\x1a\n"
LOCKED_SECONDS: Final = 1.3
"""Longer than keys wait for what they open."""
PIECES: Final = (1, 3, 10, 1000)
"""Bytes that arrive at once."""
WRITES: Final[tuple[tuple[type, str], ...]] = (
    *((FakeEngine, name) for name in ("open", "create", "change")),
    *((FakeConversation, name) for name in ("say", "attach", "change", "shell")),
    (FakeQueue, "add"),
)
"""Operations that wait for the store."""


class Player:
    """Types as a terminal does: bytes, through the parser of the driver."""

    def __init__(self, shell: Shell, script: Script, folder: Path) -> None:
        self._shell = shell
        self._script = script
        self._folder = folder
        self._rng = random.Random(script.seed)
        self._sizes = random.Random(script.seed)
        self._input = TerminalInput()
        self._free = asyncio.Event()
        self._free.set()

    def lock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let everything that is stored wait while the store is locked; answers end at once."""
        for owner, name in WRITES:
            monkeypatch.setattr(owner, name, self._waits(getattr(owner, name)))

    def _waits(self, stores: Callable[..., Any]) -> Callable[..., Any]:
        async def stored(one: object, *arguments: Any, **options: Any) -> object:
            await self._free.wait()
            outcome = await stores(one, *arguments, **options)
            if isinstance(one, FakeConversation) and stores.__name__ == "say" and ENDLESS not in str(arguments[0]):
                one.become(Idle(2))
            return outcome

        return stored

    async def play(self) -> Texts:
        """Press all keys, wait until they are done, and look where their words are."""
        for number in range(len(self._script.images)):
            (self._folder / f"image{number}.png").write_bytes(PNG + bytes([number]) * 20)
        for step in self._script.steps:
            await self._step(step)
        await self._shell.until(self._is_done)
        await self._shell.pilot.pause()
        assert await self._shell.active.drafts.keep()
        return self._texts()

    async def _step(self, step: Step) -> None:
        if step.weather is Weather.LOCKED:
            self._free.clear()
        for stroke in step.strokes:
            if isinstance(stroke, Pause):
                if step.weather is Weather.CALM and stroke.seconds:
                    await self._shell.until(self._is_done)
            elif step.weather is Weather.FROZEN:
                self._press(stroke)
            else:
                await self._press_in_pieces(stroke, step.weather)
        if step.weather is Weather.LOCKED:
            await poll(self._keys_are_done, LOCKED_SECONDS)
            self._free.set()
            await self._shell.until(self._is_done)  # Esc in the next step would end a wait

    async def _press_in_pieces(self, stroke: bytes, weather: Weather) -> None:
        while stroke:
            cut = 1000 if b"\x1b" in stroke else self._rng.choice(PIECES)
            piece, stroke = stroke[:cut], stroke[cut:]
            self._press(piece)
            if weather is Weather.CALM:
                await self._shell.until(self._keys_are_done)
            elif self._rng.random() < 0.3:
                await asyncio.sleep(0)

    def _resize(self) -> None:
        size, driver = some_size(self._sizes), self._shell.app._driver
        assert driver is not None
        driver._size = size
        self._shell.app.post_message(events.Resize(Size(*size), Size(*size)))

    def _press(self, stroke: bytes) -> None:
        if self._sizes.random() < RESIZES:
            self._resize()
        text = re.sub(r"@IMAGE(\d+)@", lambda found: str(self._folder / f"image{found[1]}.png"), stroke.decode())
        for event in self._input.feed(text):
            self._shell.app.post_message(event)

    def _keys_are_done(self) -> bool:
        order = self._shell.app.key_order
        waits = self._input.due is not None or not self._shell.app._message_queue.empty()
        return not (waits or order._under_way or order._held or order._waits)

    def _is_done(self) -> bool:
        active = self._shell.active
        return self._keys_are_done() and not active.is_changing and not active.in_flight.waiting

    def _texts(self) -> Texts:
        texts, engine = Texts(), self._shell.engine
        for one in engine.opened.values():
            if one.id not in engine.stored or engine.stored[one.id].deleted:
                continue
            texts.titles[one.id] = one.record.title
            written = [
                parse_draft(one.record.draft).text,
                *(text for text, _ in one.said),
                *(line for line, _ in one.shells),
            ]
            texts.of[one.id] = [text for text in (*written, *(each.text for each in one.queue.waiting)) if text]
            for number, data in enumerate(one.attached, start=1):
                sent = any(f"image-{number}" in ids for _, ids in one.said)
                if sent or f"image-{number}" in parse_draft(one.record.draft).image_ids:
                    texts.images.setdefault(str(data[-1]), []).append(one.id)
        for path in self._folder.rglob("stash/*/*.txt"):
            texts.loose.append(path.read_text("utf-8"))
        return texts


async def played(shell: Shell, seed: int, kinds: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script and the texts after it was played."""
    for title in OPENERS:
        shell.engine.seed(title, messages=2)
    await shell.active.index.reload()
    script = Script(seed, kinds)
    player = Player(shell, script, folder)
    player.lock(monkeypatch)
    return script, await player.play()
