"""Hostile text from every side acts on no terminal (FAULTS 55, 56), and floods leave the keys alone (FAULTS 48, 54)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import psutil
import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, calls_all, result_text, says
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import event, plays, recording, refuses, start, stop, text, thinking
from tests.support.program import CTRL_Q, ENTER, ESC, Program, alive, mark, program

pytestmark = pytest.mark.pty

ACTING = {
    "clipboard": "\x1b]52;c;aGFja2Vk\x07",
    "title": "\x1b]0;hacked\x07\x1b]2;hacked\x1b\\",
    "link": "\x1b]8;;http://hacked.example\x1b\\seen\x1b]8;;\x1b\\",
    "erase": "\x1b[2J\x1b[H",
    "c1": "\u009b2J\u009d0;hacked\u009c",
    "dcs": "\x1bP+q436f\x1b\\",
    "apc": "\x1b_Ga=T;hacked\x1b\\",
    "pm": "\x1b^hacked\x1b\\",
    "report": "\x1b[6n\x1b[c\x1b[21t",
    "bidi": "\u202eevil\u202c\u2066x\u2069",
    "bell": "\x07\x0e\x08\x08",
}
MARKUP = "[/] [1, 2] [@click=app.quit]push[/] [link=http://hacked.example]here[/link] [bold]"
HOSTILE = "BEGIN " + " ".join(f"{name}:{payload}" for name, payload in ACTING.items()) + f" {MARKUP} END"
FILE_NAME = "f\x1b]0;hacked\x07\u009b2J\u202e[@click=app.quit][bold].txt"
RAW = {
    "clipboard": rb"\x1b\]52;",
    "title": rb"\x1b\](?:0|2);",
    "link": rb"\x1b\]8;",
    "dcs": rb"\x1bP",
    "apc": rb"\x1b_",
    "pm": rb"\x1b\^",
    "device report": rb"\x1b\[(?:c|21t|6n)",
    "c1": "[\u0080-\u009f]".encode(),
    "bidi": "\u202e|\u202c|\u2066|\u2069".encode(),
    "control": rb"[\x00-\x07\x0e-\x1a\x7f\x08]",
}
"""Patterns that bytes written to the terminal must not match."""
C1 = re.compile(b"\xc2[\x80-\x9f]")
OWN = re.compile(
    rb"\x1b\]22;[a-z]*\x07|\x1b\[2[23];0t|\x1b\]2;[^\x00-\x1f\x7f]*\x07|\x1b\]9;4;[0-9;]*\x07|\x1b\]11;\?\x1b\\"
    rb"|\x1b\]8;id=[0-9a-f]{12};(?:https?://[!-~]+)?\x1b\\"
)
"""Phoenix's and Textual's own: pointer, title without a control, progress, the question for the background, and
links with the id of the process to addresses that are written there.
"""


def got_through(running: Program, since: int = 0) -> dict[str, bytes]:
    """The hostile sequences among the bytes written since then, with what surrounds them."""
    raw = OWN.sub(b"", bytes(running.raw[since:]))
    patterns = {**{name: re.compile(pattern) for name, pattern in RAW.items() if name != "c1"}, "c1": C1}
    found = {name: pattern.search(raw) for name, pattern in patterns.items()}
    return {name: raw[max(match.start() - 20, 0) : match.end() + 20] for name, match in found.items() if match}


async def started(running: Program) -> tuple[int, int]:
    """Ready; gives how much had been written and how often the screen had been erased by then."""
    await running.ready()
    return len(running.raw), running.raw.count(b"\x1b[2J")


def erased(running: Program, before: tuple[int, int]) -> int:
    return running.raw.count(b"\x1b[2J") - before[1]


async def test_the_words_and_thoughts_of_a_model_do_not_act(tmp_path: Path) -> None:
    answer = plays(recording(start(), thinking(0, HOSTILE, signature="s"), text(1, HOSTILE, "\n\nThe end."), stop()))
    async with serve(answer) as server, program(with_claude(tmp_path, server.url), rows=50) as running:
        before = await started(running)
        await running.send("Hello")
        await running.shows("The end.", "ready")
        running.type(b"\x0f")  # Ctrl+O: thoughts too
        await running.until(lambda: running.words.count("BEGIN") >= 2, "words and thoughts")
        assert "[1, 2] [@click=app.quit]push[/]" in running.words
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)
        assert running.process.isalive()


async def test_text_that_streams_does_not_act_however_it_is_cut(tmp_path: Path) -> None:
    async def letter_by_letter(talk: Talk) -> None:
        await talk.begin()
        first, *deltas, last = text(0, *HOSTILE, " The end.")
        for body in (start(), first, *deltas, last, *stop()):
            await talk.send(event(body))
            await asyncio.sleep(0)
        await talk.end()

    async with serve(letter_by_letter) as server, program(with_claude(tmp_path, server.url), rows=50) as running:
        before = await started(running)
        await running.send("Hello")
        await running.shows("The end.", "ready")
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)


async def test_tools_do_not_act_by_what_they_print_list_or_change(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / FILE_NAME).write_text("x")
    (tmp_path / "out.txt").write_text(HOSTILE)
    wanted = calls_all(
        ("bash", "toolu_1", {"command": "cat ../out.txt; false"}),
        ("list_files", "toolu_2", {}),
        ("write_file", "toolu_3", {"path": "new.txt", "content": HOSTILE}),
        ("write_file", "toolu_4", {"path": f"dir/{FILE_NAME}", "content": "y\n"}),
        ("read_file", "toolu_5", {"path": f"none{HOSTILE}"}),
        ("search", "toolu_6", {"pattern": HOSTILE}),
        (f"no_tool{HOSTILE}", "toolu_7", {"a": HOSTILE}),
    )
    async with (
        serve(wanted, says("All called.")) as server,
        program(with_claude(tmp_path, server.url), "--permission-mode", "auto", rows=90, columns=160) as running,
    ):
        before = await started(running)
        await running.send("Go")
        await running.shows("All called.", "ready")
        running.type(b"\x0f")
        await running.until(lambda: "[@click=app.quit][bold].txt'" in running.words, "the name of the file")
        await running.until(lambda: running.words.count("[link=http://hacked.example]here[/link]") >= 3)
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)
        assert "No model" not in running.text
        assert running.process.isalive()


def joined(running: Program) -> str:
    """The rows of the conversation, bars and blanks at their ends left out, as one."""
    return "".join(row.partition("│ ┃ ")[2] for row in running.text.split("\n"))


async def test_a_question_shows_every_hidden_character(tmp_path: Path) -> None:
    command = "echo ok # \x1b[24D\x1b[K rm -rf ~ \u202etxt\u2066 \u200bz \U000e0041" + " " * 300 + "; true " + HOSTILE
    async with (
        serve(calls("bash", command=command), says("Done.")) as server,
        program(with_claude(tmp_path, server.url), rows=60) as running,
    ):
        before = await started(running)
        await running.send("Go")
        await running.shows("Run a command?")
        signs = ("rm -rf ~", "␛[24D", "␛[K", "␛]52;c;aGFja2Vk", "[@click=app.quit]push[/]")
        await running.until(lambda: all(sign in joined(running) for sign in signs), "every sign")
        shown = joined(running)
        for code in ("202e", "200b", "e0041", "9b"):
            assert code in shown.lower()
        assert "␠⟨300 times⟩" in shown
        raw = OWN.sub(b"", bytes(running.raw[before[0] :]))
        assert b"\x1b]" not in raw
        assert b"\x1b[24D" not in raw
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)


async def test_an_error_of_the_server_does_not_act(tmp_path: Path) -> None:
    async with (
        serve(refuses(400, "invalid_request_error", HOSTILE)) as server,
        program(with_claude(tmp_path, server.url), rows=60) as running,
    ):
        before = await started(running)
        await running.send("Hello")
        await running.shows("BEGIN", "✗")
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)
        assert running.process.isalive()


async def test_a_retry_reason_does_not_act(tmp_path: Path) -> None:
    async with (
        serve(refuses(529, "overloaded_error", HOSTILE), says("Fine.")) as server,
        program(with_claude(tmp_path, server.url), rows=40) as running,
    ):
        before = await started(running)
        await running.send("Hello")
        await running.shows("Fine.", "ready")
        assert (got_through(running, before[0]), erased(running, before)) == ({}, 0)


async def test_titles_drafts_and_notices_do_not_act(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "-n", HOSTILE.replace("\x00", ""), HOSTILE)
        assert ran.code == 0
        async with program(phoenix, "-c", columns=140, rows=40) as running:
            await running.shows("Hello.", "BEGIN")
            running.paste(HOSTILE.replace("\x1b", "").replace("\u009b", ""))
            await running.until(lambda: running.words.count("BEGIN") == 3, "the draft")
            running.type(ENTER)
            await running.until(lambda: running.words.count("Hello.") == 2 and "ready" in running.words, "an answer")
            running.type(f"/theme {MARKUP}")
            await running.shows("┃ /theme [/]")
            running.type(ENTER)
            await running.lacks("┃ /theme")
            running.type(CTRL_Q)
            assert await running.exit_code() == 0
            assert got_through(running) == {}


async def test_printed_without_a_screen_it_does_not_act_either(tmp_path: Path) -> None:
    async with serve(refuses(400, "invalid_request_error", HOSTILE)) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hello")
        assert ran.code == 1
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ran.err)


async def test_a_click_on_markup_does_nothing(tmp_path: Path) -> None:
    async with (
        serve(says("[@click=app.quit]push me[/] and [link=http://hacked.example]here[/link]")) as server,
        program(with_claude(tmp_path, server.url)) as running,
    ):
        await running.ready()
        await running.send("Hello")
        await running.shows("[@click=app.quit]push me[/]", "ready")
        rows = running.text.split("\n")
        row = next(number for number, line in enumerate(rows, 1) if "push me" in line)
        column = rows[row - 1].index("push me") + 2
        running.type(f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m")
        running.type("still here")
        await running.shows("still here")
        assert json.dumps(running.words).count("Open http") == 0


MEGABYTE = 1 << 20


async def test_keys_echo_and_esc_works_while_a_command_floods(tmp_path: Path) -> None:
    marked = mark()
    command = f"yes flood-{marked}"
    async with (
        serve(calls("bash", command=command), says("Dry again.")) as server,
        program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running,
    ):
        await running.ready()
        await running.send("Flood")
        await running.until(lambda: f"│ flood-{marked}" in running.text, "the flood")
        before = psutil.Process(running.pid).memory_info().rss
        for number in range(8):
            running.type(f"{number}")
            await running.shows("┃ " + "".join(map(str, range(number + 1))))
        assert alive(marked), "the flood, while keys echo"
        running.type(ESC)
        await running.until(lambda: not alive(marked), "the end of the flood")
        await running.shows("ready")
        assert psutil.Process(running.pid).memory_info().rss - before < 50 * MEGABYTE
        assert "┃ 01234567" in running.text
        assert len(running.raw) < 20 * MEGABYTE


async def test_a_flood_that_ends_is_cut_in_the_middle_and_says_how_much(tmp_path: Path) -> None:
    async with serve(calls("bash", command="seq 1 400000"), says("Seen.")) as server:
        async with program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Count")
            await running.shows("Seen.", "ready")
        text = result_text(server.requests[1])
        assert text.startswith("1\n2\n3\n")
        assert "400000" in text
        assert len(text) < 200_000


async def test_nul_and_broken_bytes_in_output_do_not_spoil_the_conversation(tmp_path: Path) -> None:
    command = r"printf 'a\000b\377\376\355\240\200c\n'"
    async with serve(calls("bash", command=command), says("One."), says("Two.")) as server:
        async with program(with_claude(tmp_path, server.url), "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Print")
            await running.shows("One.", "ready")
            await running.send("And?")
            await running.shows("Two.", "ready")
        assert "\0" not in result_text(server.requests[1])


async def test_a_paste_of_megabytes_is_folded_and_sent_whole_or_cut_with_a_word(tmp_path: Path) -> None:
    lines = "\n".join(f"line {number} of a long paste" for number in range(20_000))
    async with serve(says("Long.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        for start in range(0, len(framed := f"\x1b[200~{lines}\x1b[201~"), 2048):
            running.type(framed[start : start + 2048])
            await asyncio.sleep(0)  # its output is read
        running.type(" end\r")
        await running.shows("Long.")
        sent = str(server.requests[0].json["messages"])
        assert "line 0 of a long paste" in sent
        assert "truncated" in sent or "line 19999" in sent
