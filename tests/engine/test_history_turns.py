"""A limit of turns: the model is sent the newest ones, the transcript keeps all (SPEC CLAW-20)."""

from __future__ import annotations

from pathlib import Path

from engine.executor.session import EngineSettings
from engine.machine.messages import ToolUseBlock, text_in
from engine.providers.scripted import Reply, ScriptedCall, Text
from tests.support.engine import Bench, engine_bench


def sent(bench: Bench) -> list[str]:
    return [text_in(message.blocks) for message in bench.provider.requests[-1].messages]


async def test_only_the_newest_turns_are_sent_and_all_are_kept(tmp_path: Path) -> None:
    replies = [Reply((Text(f"answer {n}"),)) for n in range(4)]
    async with engine_bench(tmp_path, *replies, settings=EngineSettings(history_turns=2)) as bench:
        conversation = await bench.conversation()
        for n in range(4):
            await conversation.say(f"ask {n}")
            await conversation.wait_idle()
        assert sent(bench) == ["ask 2", "answer 2", "ask 3"]
        assert len(await bench.store.messages(conversation.id)) == 8
        report = await conversation.context.report()
        assert report.measured.messages == 4


async def test_an_id_of_a_call_that_is_no_longer_sent_is_not_used_again(tmp_path: Path) -> None:
    """A server that numbers the calls of each request would break the record of the earlier one."""
    call = Reply((ScriptedCall("bash", '{"command": "ls"}', "call_0"),))
    script = (call, Reply((Text("a"),)), call, Reply((Text("b"),)))
    async with engine_bench(tmp_path, *script, settings=EngineSettings(history_turns=1)) as bench:
        conversation = await bench.conversation()
        for text in ("first", "second"):
            await conversation.say(text)
            await conversation.wait_idle()
        rows = await bench.store.messages(conversation.id)
        calls = [block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock)]
        assert calls == ["call_0", "call_0_dedup_1"]
        assert sent(bench)[0] == "second"
