"""Floods: output without end, a paste of megabytes, an answer of many pages; keys still count (FAULTS 48, 54)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, result_text, says
from tests.support.loopback import serve
from tests.support.program import ESC, alive, mark, program

pytestmark = pytest.mark.pty
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
