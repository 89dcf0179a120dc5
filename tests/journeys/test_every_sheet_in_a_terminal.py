"""Every command, and every key of the workspace, in one real program: what opens takes each key twice in a row."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Final

import msgspec
import pytest
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.keys import _character_to_key

from phoenix_tui.features.catalogue import COMMANDS
from tests.support.journeys import Answer, Claude, calls, picks, says
from tests.support.loopback import Seen
from tests.support.pressing_child import MARK, SOCKET, Open
from tests.support.program import CTRL_Q, Program, on_screen
from tests.support.questions import COLOUR, PARTS

pytestmark = pytest.mark.pty
LEAVES: Final = frozenset({"ctrl+q", "ctrl+c", "ctrl+d", "ctrl+z", "ctrl+g"})
"""Keys that end or stop Phoenix, or lend its terminal to an editor."""
SENDS: Final = ("quit", "init", "retry")
"""Commands that end Phoenix, or only send a message."""
LAST: Final = ("new", "resume", "archive", "delete")
"""Commands behind all others, which need the conversation that these leave."""
KEYS: Final = ("down", "up", "right", "left", "tab", "shift+tab", "space", "pagedown", "home", *"019")
"""Keys for all, before those of the sheet itself."""
SHEETS: Final = frozenset({
    *("HelpSheet", "ModelSheet", "RulesSheet", "TasksSheet"),
    *("PageSheet Notes", "PageSheet MCP servers", "PageSheet Profiles", "PageSheet Extensions of this folder"),
    *("StatisticsSheet", "HistorySheet", "TurnsSheet", "FindSheet", "SearchSheet", "ChangesSheet", "RewindSheet"),
    *("ArchiveSheet", "ThemeSheet", "SettingsSheet", "TextSheet", "LineSheet"),
})  # fmt: skip
"""Sheets that are among those that open."""
TABS: Final = frozenset(one.tab for one in COMMANDS if one.tab)
"""Tabs, each of which opens."""
WITH_OWN: Final = "PHOENIX_KEY_FUZZ" in os.environ
"""`make fuzz` presses the own keys of each sheet, too: half a minute; the suite does so without a terminal."""
AT_ONCE: Final = 5
"""Keys that are pressed before the next look; in the other order, too, where one of them closed it."""
CLOSES: Final = ("enter", "escape")
CODES: Final = {name: code for code, name in reversed(FUNCTIONAL_KEYS.items())} | {"enter": "13u", "space": "32u"}
MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4, "super": 8}


def bytes_of(key: str) -> bytes:
    """A key as a terminal with kitty's protocol sends it."""
    *held, name = key.split("+") if len(key) > 1 else [key]
    code = CODES.get(name) or f"{ord(SIGNS.get(name, name))}u"
    return f"\x1b[{code[:-1]};{1 + sum(MODIFIERS[one] for one in held)}{code[-1]}".encode()


SIGNS: Final = {_character_to_key(chr(sign)): chr(sign) for sign in range(33, 127)}


class Presser:
    """Presses keys, and knows what they opened."""

    def __init__(self, running: Program, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._running = running
        self._reader = reader
        self._writer = writer
        self.seen: set[str] = set()
        """Sheets that had all their keys."""

    async def press(self, keys: bytes, *words: str) -> Open:
        """Send these; what is open then, closed or waited for."""
        self._running.type(keys + MARK)
        self._writer.write(f"look {' '.join(words)}\n".encode())
        answer = await self._reader.readline()
        assert answer, self._running.text
        return msgspec.json.decode(answer, type=Open)

    async def open(self, opener: bytes) -> Open:
        """Press this in the empty composer, and wait."""
        await self.press(b"", "close")
        return await self.press(opener, "wait")

    async def press_all(self, opener: bytes) -> None:
        """Open it, and press each key twice; once it is closed, it is opened again."""
        opened = await self.open(opener)
        if not (opened.sheet or opened.asks) or (opened.tab or opened.sheet) in self.seen:
            return
        self.seen |= {opened.sheet, opened.tab or opened.sheet}
        own = [key for key in opened.keys if WITH_OWN and key not in {*LEAVES, *KEYS, *CLOSES}]
        for keys in (KEYS, *(own[start : start + AT_ONCE] for start in range(0, len(own), AT_ONCE))):
            if not await self._stays(opened, keys):
                opened = await self.open(opener)
                if keys is not KEYS and not await self._stays(opened, keys[::-1]):  # those behind the one that closed
                    opened = await self.open(opener)
        for key in CLOSES:
            if not await self._stays(opened, [key]):
                opened = await self.open(opener)

    async def _stays(self, opened: Open, keys: Iterable[str]) -> bool:
        now = await self.press(b"".join(bytes_of(key) * 2 for key in keys))
        return (now.sheet, now.number) == (opened.sheet, opened.number)


def answer(seen: Seen) -> Answer:
    last = seen.body.decode().rpartition('"role":')[2]
    if "tool_result" in last:
        return says("Done.")
    if "approve" in last:
        return calls("bash", command="true")
    return calls("ask_user", questions=[COLOUR, PARTS]) if "ask me" in last else says("# Done\n\n- one\n- two\n")


async def test_each_of_them_takes_each_key_twice_and_phoenix_goes_on(claude: Claude) -> None:
    phoenix, _ = await claude(picks(answer), EDITOR="true", VISUAL="true", BROWSER="true")
    async with on_screen(phoenix, module="tests.support.pressing_child", columns=60, rows=16) as running:
        await running.send("Hello", "○ ready", "two")
        reader, writer = await asyncio.open_unix_connection(phoenix.home / SOCKET)
        presser = Presser(running, reader, writer)
        for asks in ("approve this", "ask me"):
            await presser.press_all(f"{asks}\r".encode())
            presser.seen.discard("")
        for command in sorted(COMMANDS, key=lambda one: one.name in LAST):
            if command.name not in SENDS:
                await presser.press_all(f"\x1b[200~/{command.name}\x1b[201~\r".encode())
        for key in (await presser.open(b"")).keys:
            if key not in LEAVES:
                await presser.press_all(bytes_of(key) * 2)
        await presser.open(b"")
        await running.send("still here", "still here")
        assert presser.seen >= SHEETS | TABS
        running.type(CTRL_Q)
        await running.until(lambda: "Quit and stop" in running.words or not running.process.isalive())
        running.type("y" if running.process.isalive() else "")  # a key may have begun a run
        assert await running.exit_code() == 0
        writer.close()
