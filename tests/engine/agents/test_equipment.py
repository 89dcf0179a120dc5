"""Tools of a conversation: by its profile, and for a sub-agent never those that spawn (SPEC BED-009)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.engine import ConversationOptions
from engine.records import PermissionMode
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, Text


@pytest.mark.parametrize(
    ("profile", "names"),
    [("", ["bash", "spawn_agents", "spawn_task"]), ("code", ["bash", "spawn_agents", "spawn_task"]), ("explore", [])],
)
async def test_a_profile_says_what_the_users_own_conversation_may_call(
    tmp_path: Path, profile: str, names: list[str]
) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        options = ConversationOptions(
            harness.cwd, "scripted/main", permission_mode=PermissionMode.AUTO, profile=profile
        )
        conversation = await harness.engine.create(options)
        await conversation.say("hi")
        await conversation.wait_idle()
        assert [tool.name for tool in harness.provider.requests[0].tools] == names


async def test_a_profile_that_is_gone_takes_nothing_away(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", profile="gone"))
        await conversation.say("hi")
        await conversation.wait_idle()
        assert "bash" in {tool.name for tool in harness.provider.requests[0].tools}
