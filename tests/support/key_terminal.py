"""Plays a script of keys into the real program in a real pty, which is stopped or waits for its database meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import sqlite3
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from PIL import Image

from phoenix_tui.features.composing import parse_draft
from phoenix_tui.lifecycle.stop_signals import SIGNAL_EXIT
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import Answer, picks, rows, says, starts_to_say
from tests.support.key_noise import Noise
from tests.support.key_oracle import Texts, faults
from tests.support.key_scripts import ENDLESS, ESC, NEW, OPENERS, RESIZES, Pause, Script, Step, Weather, some_size
from tests.support.loopback import Seen, serve
from tests.support.program import Program, program

PIECES: Final = (1, 3, 10, 1000)
"""Bytes that are typed at once."""
STOPS: Final = (0.01, 0.02, 0.05, 0.3, 1.2)
"""Seconds for which Phoenix is stopped."""
LOCKS: Final = (0.3, 1.3, 2.2)
"""Seconds for which the database stays locked behind the keys."""
LOOKS: Final = (0.5, *[1.0] * 30)
"""Seconds before each look for what was typed: it may come late, and be nowhere for a moment."""
UNFINISHED: Final = re.compile(rb"\x1b(\[[0-9;]*|O)?$")
NOISE: Final = 20
"""Pieces of noise for each step of a script."""
LEAST_WIDTH: Final = 10
"""Width of the first image; each further one is a pixel wider, by which it is known again."""


def _answer(seen: Seen) -> Answer:
    body: Any = seen.json
    last = json.dumps(body["messages"][-1]["content"])
    goes_on = ENDLESS in last or zlib.crc32(last.encode()) % 4 == 0
    return starts_to_say("I begin") if goes_on else says("Done.")


class Terminal:
    """Types a script, and finds where its words are."""

    def __init__(self, running: Program, phoenix: Phoenix, script: Script) -> None:
        self._running = running
        self._phoenix = phoenix
        self._script = script
        self._rng = random.Random(script.seed)
        self._sizes = random.Random(script.seed)

    async def faults(self) -> list[str]:
        """Play it all; returns what is wrong at the end."""
        for step in self._script.steps:
            await self._step(step)
        found: list[str] = []
        for pause in LOOKS:
            await asyncio.sleep(pause)
            found = faults(self._script, _texts(self._phoenix))
            if not found:
                break
        return found

    async def _step(self, step: Step) -> None:
        async with self._weather(step.weather):
            for stroke in step.strokes:
                if isinstance(stroke, Pause):
                    await asyncio.sleep(stroke.seconds)
                else:
                    await self._press(stroke, step.weather)
        await asyncio.sleep(self._rng.choice((0.0, 0.05, 0.5)))

    @asynccontextmanager
    async def _weather(self, weather: Weather) -> AsyncGenerator[None]:
        if weather is Weather.FROZEN:
            self._running.signal(signal.SIGSTOP)
            yield
            self._running.signal(signal.SIGCONT)
        elif weather is Weather.LOCKED:
            with closing(sqlite3.connect(self._phoenix.home / "phoenix.db", isolation_level=None, timeout=5)) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
                await asyncio.sleep(self._rng.choice(LOCKS))
                other.execute("ROLLBACK")
        else:
            yield

    async def _press(self, stroke: bytes, weather: Weather) -> None:
        folder = str(self._phoenix.home.parent).encode()
        stroke = re.sub(rb"@IMAGE(\d+)@", lambda found: folder + b"/image%s.png" % found[1], stroke)
        while stroke:
            cut = self._rng.choice(PIECES)
            while UNFINISHED.search(stroke[:cut]) and cut < len(stroke):
                cut += 1
            piece, stroke = stroke[:cut], stroke[cut:]
            if self._sizes.random() < RESIZES:
                self._running.resize(*some_size(self._sizes))
            if weather is Weather.STALLS and self._rng.random() < 0.4:
                self._running.signal(signal.SIGSTOP)
                self._running.type(piece)
                await asyncio.sleep(self._rng.choice(STOPS))
                self._running.signal(signal.SIGCONT)
            else:
                self._running.type(piece)
                await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.03)))


def _texts(phoenix: Phoenix) -> Texts:
    texts = Texts()
    drafts = rows(phoenix, "SELECT id, title, draft FROM conversations WHERE deleted_at IS NULL")
    sent = rows(phoenix, "SELECT conversation_id, text, content_json FROM messages WHERE role = 'user'")
    queued = rows(phoenix, "SELECT conversation_id, content_json FROM queued_messages")
    everything: dict[str, str] = {}
    for one, title, draft in drafts:
        texts.titles[one], texts.of[one], everything[one] = title, [parse_draft(draft).text] if draft else [], draft
    for one, text, content in sent:
        texts.of[one].append(text)
        everything[one] += content
    for one, content in queued:
        texts.of[one].append(json.loads(content)["text"])
        everything[one] += content
    for image, width in rows(phoenix, "SELECT id, orig_width FROM attachments"):
        owners = texts.images.setdefault(str(width - LEAST_WIDTH), [])
        owners += [one for one, content in everything.items() if image in content]
    for path in phoenix.home.rglob("*"):
        if path.is_file() and "stash" in path.parts:
            texts.loose.append(path.read_text("utf-8"))
        elif path.is_file() and "history" in path.name:
            texts.copies += path.read_text("utf-8", "replace")
    return texts


async def played(folder: Path, script: Script) -> list[str]:
    """Start Phoenix in `folder`, play a script, and return what is wrong at the end, with all texts."""
    for number in range(len(script.images)):
        Image.new("RGB", (LEAST_WIDTH + number, 12), (number * 20, 1, 2)).save(folder / f"image{number}.png")
    async with serve(picks(_answer)) as server:
        phoenix = with_claude(folder, server.url, EDITOR=str(_editor(folder)), VISUAL="")
        (phoenix.cwd / "readme.md").write_text("x")
        async with program(phoenix, columns=140, rows=40) as running:
            await running.ready()
            for title in OPENERS:
                await running.send(title)
                await running.until(partial(_is_stored, phoenix, title))
                running.type(ESC)
                running.type(NEW)
                await running.shows("Try   What is this project?")
            found = await Terminal(running, phoenix, script).faults()
            edited = log.read_text() if (log := folder / "edited").exists() else ""
            await _bear_noise(running, script)
        if edited:
            written = "\n".join(text for all_of in _texts(phoenix).of.values() for text in all_of)
            found += [f"lost of the editor: {word}" for word in edited.split() if word not in written]
    return [*found, str(dict(_texts(phoenix).of))] if found else []


async def _bear_noise(running: Program, script: Script) -> None:
    """Send noise and sizes behind the keys; Phoenix takes it all, draws afterwards, and leaves in order."""
    rng, noise = random.Random(script.seed), Noise(script.seed)
    for _ in range(NOISE * script.most):
        running.type(noise.piece())
        if rng.random() < RESIZES:
            running.resize(*some_size(rng))
        await asyncio.sleep(rng.choice((0.0, 0.0, 0.01)))
    running.type(b"\x1b\\\x1b[201~")
    drawn = len(running.raw)
    running.resize(100, 30)
    await running.until(lambda: len(running.raw) > drawn and "┃" in running.text, "a frame behind the noise")
    running.signal(signal.SIGTERM)
    assert await running.exit_code() == SIGNAL_EXIT + signal.SIGTERM, running.text
    assert "Traceback" not in running.text


def _is_stored(phoenix: Phoenix, title: str) -> bool:
    with suppress(sqlite3.Error):
        return bool(rows(phoenix, f"SELECT 1 FROM messages WHERE text = '{title}'"))
    return False


def _editor(folder: Path) -> Path:
    """An editor that adds one word to the draft, and notes it in `edited`."""
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\nsleep 0.2\nprintf 'e%sx ' $$ >> \"$1\"\necho e$$x >> {folder}/edited\n")
    path.chmod(0o755)
    return path
