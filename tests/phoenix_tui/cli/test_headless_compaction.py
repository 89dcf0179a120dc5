"""A script whose conversation fills the window: older messages are summarized, and the script is informed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import picks
from tests.support.loopback import serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text

LONG = "about the queue of each peer, " * 60


async def test_a_script_hears_of_the_summary_and_gets_its_answer(tmp_path: Path) -> None:
    full = plays(recording(start({"input_tokens": 190_000, "output_tokens": 1}), text(0, LONG), stop()))
    summary = plays(recording(start(), text(0, "one queue for each peer"), stop()))
    async with serve(picks(lambda seen: summary if b"Write the summary now." in seen.body else full)) as server:
        phoenix = with_claude(tmp_path, server.url)
        first = await phoenix.run("-p", "-m", "anthropic/claude-haiku-4-5", "one")
        again = [await phoenix.run("-p", "-c", words) for words in ("two", "three")]
        never = replace(phoenix, extra={**phoenix.extra, "PHOENIX_COMPACT_PERCENT": "0"})
        unheard = await never.run("-p", "-c", "--output-format", "stream-json", "four")
        ran = await phoenix.run("-p", "-c", "--output-format", "stream-json", "five")
    assert [each.code for each in (first, *again, unheard, ran)] == [0, 0, 0, 0, 0]
    assert "compact_boundary" not in unheard.out
    [boundary] = [line for line in ran.lines if line.get("subtype") == "compact_boundary"]
    assert boundary["message"].startswith("Summarized 4 messages, kept 5 · 190k → ~")
    assert "one queue" not in str(boundary)
    assert ran.lines[-1]["subtype"] == "success"
    assert len(server.requests) == 6
