"""Output of `phoenix -p` for an interrupted answer: its text, the reason, the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool

GONE = {"type": "error", "error": {"type": "permission_error", "message": "This key was taken away."}}


async def breaks(talk: Talk) -> None:
    await talk.begin()
    await talk.send(*recording(start(), text(0, "The first ", "half")[:3], GONE))
    await talk.end()


async def test_text_is_what_came_and_stderr_says_why_there_is_no_more(tmp_path: Path) -> None:
    async with serve(breaks) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "Hi")
        shown = await phoenix.run("conversations", "show", (await listed(phoenix))["session_id"])
    assert (ran.code, ran.out) == (41, "The first half\n")
    assert ran.err.endswith("does not allow this: This key was taken away.\n")
    assert "The first half" in shown.out
    assert "The answer broke off here and is kept:" in shown.out


async def listed(phoenix: Phoenix) -> dict[str, str]:
    conversations: list[dict[str, str]] = (await phoenix.run("conversations", "list", "--json")).json
    return conversations[0]


@pytest.mark.parametrize("output", ["json", "stream-json"])
async def test_a_result_holds_what_came_and_is_an_error(tmp_path: Path, output: str) -> None:
    async with serve(breaks) as server:
        flags = ("--output-format", output, "--include-partial-messages")[: 3 if output == "stream-json" else 2]
        ran = await with_claude(tmp_path, server.url).run("-p", *flags, "Hi")
    result = ran.lines[-1]
    assert (ran.code, result["subtype"], result["is_error"]) == (41, "error_during_execution", True)
    assert result["result"] == "The first half"
    replies = [line["message"] for line in ran.lines if line["type"] == "assistant"]
    assert [(reply["content"], reply["stop_reason"]) for reply in replies] == (
        [([{"type": "text", "text": "The first half"}], None)] if output == "stream-json" else []
    )
    ends = [line["event"]["delta"] for line in ran.lines if line.get("event", {}).get("type") == "message_delta"]
    assert [end["stop_reason"] for end in ends] == ([None] if output == "stream-json" else [])


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("refusal", "The model declined to answer"),
        ("content_filter", "A content filter of the provider stopped the answer"),
    ],
)
async def test_what_is_declined_after_words_is_no_success(tmp_path: Path, reason: str, said: str) -> None:
    async with serve(plays(recording(start(), text(0, "Well, no."), stop(reason)))) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "Hi")
        result = (await phoenix.run("-p", "--output-format", "json", "Hi")).json
    assert (ran.code, ran.out, ran.err) == (1, "Well, no.\n", f"phoenix: {said}\n")
    assert (result["is_error"], result["result"], result["error"]) == (True, "Well, no.", said)
    assert (result["subtype"], result["stop_reason"]) == ("error_during_execution", "refusal")


async def test_words_before_a_tool_are_not_the_answer_of_a_run_that_is_declined(tmp_path: Path) -> None:
    first = recording(start(), text(0, "I look."), tool(1, "list_files", "{}"), stop("tool_use"))
    async with serve(plays(first), plays(recording(start(), stop("refusal")))) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hi")
    assert (ran.code, ran.out) == (1, "")
