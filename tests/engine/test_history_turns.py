"""A limit of turns: the model is sent the newest ones, the transcript keeps all (SPEC CLAW-20)."""

from __future__ import annotations

from pathlib import Path

from engine.executor.engine_settings import EngineSettings
from engine.executor.model_call import rename_repeated_ids
from engine.machine.messages import ToolUseBlock, text_in
from engine.machine.states import Idle
from tests.support.engine import EngineHarness, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text


def sent(harness: EngineHarness) -> list[str]:
    return [text_in(message.blocks) for message in harness.provider.requests[-1].messages]


async def test_only_the_newest_turns_are_sent_and_all_are_kept(tmp_path: Path) -> None:
    replies = [Reply((Text(f"answer {n}"),)) for n in range(4)]
    async with engine_harness(tmp_path, *replies, settings=EngineSettings(history_turns=2)) as harness:
        conversation = await harness.conversation()
        for n in range(4):
            await conversation.say(f"ask {n}")
            await conversation.wait_idle()
        assert sent(harness) == ["ask 2", "answer 2", "ask 3"]
        assert len(await harness.store.messages(conversation.id)) == 8
        report = await conversation.context.report()
        assert report.measured.messages == 4


async def test_an_id_of_a_call_that_is_no_longer_sent_is_not_used_again(tmp_path: Path) -> None:
    """A server that numbers the calls of each request would break the record of the earlier one."""
    call = Reply((ScriptedCall("bash", '{"command": "ls"}', "call_0"),))
    script = (call, Reply((Text("a"),)), call, Reply((Text("b"),)))
    async with engine_harness(tmp_path, *script, settings=EngineSettings(history_turns=1)) as harness:
        conversation = await harness.conversation()
        for text in ("first", "second"):
            await conversation.say(text)
            await conversation.wait_idle()
        rows = await harness.store.messages(conversation.id)
        calls = [block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock)]
        assert calls == ["call_0", "call_0_dedup_1"]
        assert sent(harness)[0] == "second"


async def test_an_id_of_a_call_that_was_summarized_is_not_used_again(tmp_path: Path) -> None:
    call = Reply((ScriptedCall("bash", '{"command": "ls"}', "call_0"),))
    answers = [Reply((Text(f"answer {n}, in more words than its summary has"),)) for n in range(7)]
    script = (call, *answers, call, Reply((Text("b"),)), call)
    summary = Reply((Text("so far"),), when="Write the summary now.")
    async with engine_harness(tmp_path, summary, *script, Reply((Text("c"),))) as harness:
        conversation = await harness.conversation()
        for n in range(7):
            await conversation.say(str(n))
            await conversation.wait_idle()
        await conversation.context.compact()
        await conversation.wait_idle()
        assert conversation.record.context_start_seq > 4
        for text in ("again", "and again"):
            await conversation.say(text)
            assert isinstance(await conversation.wait_idle(), Idle)
        rows = await harness.store.messages(conversation.id)
        calls = [block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock)]
        assert calls == ["call_0", "call_0_dedup_1", "call_0_dedup_2"]


def test_a_call_without_an_id_gets_one_each_time() -> None:
    blocks = (ToolUseBlock("", "bash", "{}"), ToolUseBlock("", "bash", "{}"), ToolUseBlock("a\x00b", "bash", "{}"))
    ids = [block.id for block in rename_repeated_ids(blocks, {"call_dedup_1"}) if isinstance(block, ToolUseBlock)]
    assert ids == ["call_dedup_2", "call_dedup_3", "ab"]
