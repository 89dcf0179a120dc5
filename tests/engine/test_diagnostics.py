"""Files kept for debugging, and data never kept (SPEC UNI-19, FAULTS 70)."""

from __future__ import annotations

import json
from pathlib import Path

from engine import diagnostics
from engine.diagnostics import Diagnostics
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Role, StopReason, TextBlock, Usage
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Fail, Reply, Text

KEY = "sk-ant-planted-0123456789"
REQUEST = ModelRequest("m", ("system",), (ModelMessage(Role.USER, (TextBlock(f"my key is {KEY}"),)),))
REPLY = ModelReply((TextBlock("hello"),), StopReason.END_TURN, Usage(3, 4), "m")


def test_replies_are_appended_and_the_last_request_is_kept(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path / "logs")
    kept.replied(REQUEST, REPLY, 12)
    kept.replied(REQUEST, REPLY, 13)
    lines = (tmp_path / "logs/llm_responses.jsonl").read_text().splitlines()
    assert [json.loads(line)["duration_ms"] for line in lines] == [12, 13]
    assert json.loads((tmp_path / "logs/last_messages.jsonl").read_text())["role"] == "user"
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "logs").iterdir()} == {0o600}


def test_a_key_is_never_written(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path)
    kept.replied(REQUEST, REPLY, 1)
    kept.failed(REQUEST, ProviderError(f"refused {KEY}", kind="auth", retryable=False))
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "[redacted]" in written
    assert KEY not in written


def test_old_failures_go_and_a_large_file_is_set_aside(tmp_path: Path) -> None:
    kept = Diagnostics(tmp_path)
    for _ in range(diagnostics.KEPT_ERRORS + 3):
        kept.failed(REQUEST, ProviderError("x", kind="server", retryable=True))
    assert len(list(tmp_path.glob("llm_api_error_*.json"))) == diagnostics.KEPT_ERRORS
    (tmp_path / "llm_responses.jsonl").write_text("x" * (diagnostics.ROTATE_BYTES + 1))
    kept.replied(REQUEST, REPLY, 1)
    assert (tmp_path / "llm_responses.jsonl.1").exists()
    assert len((tmp_path / "llm_responses.jsonl").read_text().splitlines()) == 1


async def test_a_conversation_leaves_its_replies_and_failures_there(tmp_path: Path) -> None:
    script = (Reply((Text("hi"),)), Reply((Fail("bad request", "invalid_request", retryable=False),)))
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, *script, settings=settings) as harness:
        conversation = await harness.conversation()
        for _ in range(2):
            await conversation.say("x")
            await conversation.wait_idle()
    names = sorted(path.name.split("_error_")[0] for path in (tmp_path / "logs").iterdir())
    assert names == ["last_messages.jsonl", "llm_api", "llm_responses.jsonl"]
