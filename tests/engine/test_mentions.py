"""`@conversation:ID`: the model reads a digest, the user's words stay as they were, an unknown one is refused."""

from __future__ import annotations

from pathlib import Path

from engine.engine import ConversationOptions
from engine.executor.attaching import ANSWER_LENGTH
from engine.executor.requests import Refused
from engine.machine.messages import TextBlock
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, Text

HELLO = Reply((Text("hello there", 3),))
LONG = Reply((Text("x" * (ANSWER_LENGTH + 5) + " end of it", 3),))


async def test_the_model_reads_a_digest_of_the_conversation_behind_the_users_words(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, LONG, HELLO) as harness:
        other = await harness.conversation()
        await other.say("how does it begin?")
        await other.wait_idle()
        await other.say("and how does it end?")
        await other.wait_idle()
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main"))
        text = f"go on as in @conversation:{other.id[:8]}, please"
        await conversation.say(text)
        await conversation.wait_idle()
        [message] = harness.provider.requests[-1].messages
        own, digest = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        assert own == text
        assert digest.startswith(f'[Conversation {other.id} "how does it begin?", in {harness.cwd}, 4 messages')
        assert "First request: how does it begin?" in digest
        assert "Last request: and how does it end?" in digest
        assert digest.endswith("end of it")
        assert "characters left out" in digest
        assert len(digest) < ANSWER_LENGTH + 500
        assert conversation.record.title == text


async def test_a_message_that_names_no_conversation_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        answer = await conversation.say("see @conversation:ffffffff")
        assert answer == Refused("@conversation:ffffffff cannot be read: there is no such conversation.")
        assert harness.provider.requests == []


async def test_a_mail_address_and_a_file_are_no_conversation(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("write to me@conversation:12345678 about @src/conversation.py")
        await conversation.wait_idle()
        [message] = harness.provider.requests[0].messages
        assert len(message.blocks) == 1
