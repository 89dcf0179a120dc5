"""SECURITY V12: one hostile command, file name and title, read back in every place that shows what ran."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls_all, rows, says
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, Program, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
ODD = "\r\x1b[2Kls -l\x07\u202e\u200b\U000e0041\x9b2J\x1b]0;hacked\x07\x1b]8;;http://hacked.example\x1b\\"
COMMAND = f"touch proof #{ODD}раypal"
SHOWN = "touch proof #␍␛[2Kls -l␇"
"""Form in every row, question, list and line, whatever room is left for the rest."""
NAME = f"safe{ODD}.txt".replace("/", "")
TITLE = f"Fine\r{ODD}title"
ACTING = re.compile(rb"\x1b\]0;|\x1b\]8;|\x1b\[2Kls|\x07ls|\xc2\x9b|\xe2\x80\xae|\xe2\x80\x8b|\xf3\xa0\x81\x81|\rls")
"""Bytes of the hostile text itself, none of which Phoenix writes of its own."""
LATER = f"sleep 300 #{ODD}"
LATER_SHOWN = "sleep 300 #␍␛[2Kls -l␇"


def acts(text: str | bytes) -> list[bytes]:
    return ACTING.findall(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))


def unescaped_controls(text: str) -> list[str]:
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200b\U000e0041]", text)


async def ran_once(tmp_path: Path) -> tuple[Phoenix, str]:
    """A run of such commands, and what it says while it goes and in its stream."""
    hostile = calls_all(
        ("bash", "toolu_1", {"command": COMMAND}),
        ("write_file", "toolu_2", {"path": NAME, "content": "words"}),
        ("read_file", "toolu_3", {"path": f"none{NAME}"}),
    )
    async with serve(hostile, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "-n", TITLE, "--permission-mode", "auto", "go")
    assert ran.code == 0, ran.err
    assert (phoenix.cwd / "proof").exists(), "it ran as it was written"
    assert SHOWN in ran.err
    assert (acts(ran.err), unescaped_controls(ran.err)) == ([], [])
    ((conversation_id,),) = rows(phoenix, "SELECT id FROM conversations")
    return phoenix, str(conversation_id)


async def test_progress_stream_lists_exports_and_log_show_it(tmp_path: Path) -> None:
    phoenix, one = await ran_once(tmp_path)
    for arguments in (("list",), ("show", one), ("export", one), ("search", "Done")):
        shown = await phoenix.run("conversations", *arguments)
        assert shown.code == 0, shown.err
        assert (acts(shown.out + shown.err), unescaped_controls(shown.out)) == ([], [])
        assert "Fine␍" in shown.out or arguments[0] == "search", arguments
        assert SHOWN in shown.out or json.dumps(COMMAND)[1:40] in shown.out or arguments[0] in {"list", "search"}
    for as_json in (("show", "--json", one), ("export", "--format", "json", one)):
        shown = await phoenix.run("conversations", *as_json)
        assert (acts(shown.out), unescaped_controls(shown.out)) == ([], [])
        assert json.loads(shown.out), "what stands in it is what was said, escaped"
        assert COMMAND in everything(json.loads(shown.out)) or as_json[0] == "show"
    logs = b"".join(path.read_bytes() for path in (phoenix.home / "logs").iterdir())
    assert acts(logs) == []


def everything(document: Any) -> str:
    """All texts of a document, those of JSON inside it too."""
    if isinstance(document, str):
        try:
            inner = json.loads(document)
        except ValueError:
            return document
        return everything(inner) if isinstance(inner, dict | list) else document
    values = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    return "\n".join(everything(value) for value in values)


async def test_a_stream_of_json_holds_it_escaped_and_whole(tmp_path: Path) -> None:
    async with serve(calls_all(("bash", "toolu_1", {"command": COMMAND})), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        flags = ("--output-format", "stream-json", "--include-partial-messages", "--permission-mode", "auto")
        ran = await phoenix.run("-p", *flags, "go")
    assert (acts(ran.out + ran.err), unescaped_controls(ran.out)) == ([], [])
    used = [
        block["input"]["command"]
        for line in ran.lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
        if block["type"] == "tool_use"
    ]
    assert used == [COMMAND]


async def test_lines_mode_shows_it(tmp_path: Path) -> None:
    async with serve(calls_all(("bash", "toolu_1", {"command": COMMAND})), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", columns=200) as running:
            await running.shows("You:")
            running.type("go\r")
            await sees(running, SHOWN)


async def sees(running: Program, *texts: str) -> None:
    await running.shows(*texts)
    assert acts(bytes(running.raw)) == []


async def test_every_view_of_the_screen_shows_it(tmp_path: Path) -> None:
    """Row, title, status line, terminal title, question, notification, jobs, list, peek, search, turns, context."""
    phoenix, one = await ran_once(tmp_path)
    again = calls_all(("bash", "toolu_9", {"command": LATER, "background": True}))
    async with serve(again, says("Started.")) as server:
        phoenix = with_claude(tmp_path, server.url, TERM_PROGRAM="iTerm.app")
        async with program(phoenix, "--resume", one, "--permission-mode", "ask", columns=200, rows=60) as running:
            await running.ready()
            await sees(running, SHOWN, "Fine␍", "safe␍␛[2Kls -l␇")
            assert "ls -l.txt does not exist" not in running.words, "the sentence names the file that was asked for"
            running.type("once more")
            await running.shows("once more")
            running.type(b"\r\x1b[O")  # then the window loses the focus
            await sees(running, LATER_SHOWN, "Run a command?")
            await running.until(lambda: b"\x1b]9;Phoenix" in running.raw, "a notification")
            assert re.search(rb"\x1b\]2;[^\x00-\x1f\x7f]*Fine[^\x00-\x1f\x7f]*\x07", bytes(running.raw))
            running.type(b"\x1b[I")
            await typing_guard()
            running.type(b"y")
            await running.shows("Started.", "ready")
            for command, wanted in (
                ("jobs", LATER_SHOWN),
                ("turns", "go"),
                ("context", "bash"),
                ("search proof", "Fine␍"),
            ):
                await running.shows("┃ Reply")
                running.type(f"/{command}")
                await running.shows(f"┃ /{command}")
                running.type(ENTER)
                await running.until(lambda: "┃ /" not in running.text and "┃ Reply" not in running.text, command)
                await sees(running, wanted)
                running.type(ESC)
            await running.shows("┃ Reply")
            running.type(b"\x0c")
            await sees(running, "Fine␍")
            running.type(b"p")
            await sees(running, "Started.")
            running.type(ESC + ENTER)
        assert acts(bytes(running.raw)) == []
