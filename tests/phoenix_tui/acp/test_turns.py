"""Turns of `phoenix acp`, seen by the client of the ACP library."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from acp.exceptions import RequestError

from tests.support.acp_client import editing, scripted
from tests.support.cli import with_claude
from tests.support.journeys import calls, says, starts_to_say
from tests.support.program import alive, mark
from tests.support.waiting import poll


async def test_a_prompt_is_answered_in_chunks_and_ends_its_turn(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hel", "lo ", "there.")) as opened:
        response = await opened.says("Hi")
        assert response.stop_reason == "end_turn"
        assert opened.editor.text.strip() == "Hello there."
        assert all(one.content.text for one in opened.editor.of("agent_message_chunk"))


async def test_many_pieces_come_as_few_updates(tmp_path: Path) -> None:
    pieces = [f"{number} " for number in range(2_000)]
    async with scripted(tmp_path, says(*pieces)) as opened:
        await opened.says("Count")
        assert opened.editor.text.strip() == "".join(pieces).strip()
        assert len(opened.editor.of("agent_message_chunk")) < 200


async def test_cancel_answers_the_prompt_with_cancelled(tmp_path: Path) -> None:
    async with scripted(tmp_path, starts_to_say("Once upon")) as opened:
        turn = asyncio.create_task(opened.says("Tell"))
        await opened.editor.sees(lambda: "Once upon" in opened.editor.text)
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_cancel_in_a_tool_leaves_no_process(tmp_path: Path) -> None:
    seconds = mark()
    command = f"sleep {seconds} & setsid sleep {seconds} & sleep {seconds}"
    async with scripted(tmp_path, calls("bash", command=command), flags=("--permission-mode", "auto")) as opened:
        turn = asyncio.create_task(opened.says("Wait"))
        assert await poll(lambda: len(alive(f"sleep\0{seconds}")) == 3)
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"
        assert alive(f"sleep\0{seconds}") == []
        assert opened.editor.call("toolu_1")["status"] == "failed"


async def test_a_failed_run_is_an_error_with_its_sentence(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", PHOENIX_MODEL="nowhere/model")
    with pytest.raises(RequestError, match="nowhere"):
        async with editing(phoenix) as opened:
            await opened.says("Hi")
