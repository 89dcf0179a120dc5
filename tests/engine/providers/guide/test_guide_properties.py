"""The guide ends every turn soon, whatever is typed and whatever the tools say."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.machine.messages import Role, StopReason, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest
from engine.providers.guide.plan import ROUNDS
from engine.providers.guide.provider import SIGNATURE, GuideProvider
from tools.contract import ToolClass, ToolSpec

TOOLS = tuple(
    ToolSpec(name, "", {}, ToolClass.READ)
    for name in ("bash", "read_file", "list_files", "search", "write_file", "patch", "think")
)
WORDS = st.sampled_from([
    "please", "read", "write", "list", "run", "replace", "with", "in", "the", "file", "tests", "describe", "this",
    "project", "search", "TODO", "a.py", "'b c'", "```", "\n", "count", "to", "lines", "think", "git", "changed", "!",
])  # fmt: skip
TYPED = st.one_of(
    st.text(max_size=200),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.sampled_from(["describe this project", "run the tests", "write a.txt with b", "read a.py and b.py"]),
)
RESULT = st.tuples(
    st.one_of(
        st.text(max_size=200),
        st.just("README.md\npyproject.toml\npackage.json\nMakefile"),
        st.just("1\t[project]\n2\tname = "),
        st.just('1\t{"name": 3}'),
        st.just("read it first"),
    ),
    st.booleans(),
)


async def _reply(messages: list[ModelMessage]) -> ModelReply:
    items = [item async for item in GuideProvider().stream(ModelRequest("guide", (), tuple(messages), TOOLS))]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    return reply


async def _rounds(typed: str, results: list[tuple[str, bool]]) -> int:
    messages = [ModelMessage(Role.USER, (TextBlock(typed),))]
    for number in range(ROUNDS + 2):
        reply = await _reply(messages)
        calls = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
        assert (reply.stop is StopReason.TOOL_USE) == bool(calls)
        if not calls:
            assert isinstance(reply.blocks[0], TextBlock)
            assert reply.blocks[0].text.endswith(SIGNATURE)
            return number
        answers = tuple(
            ToolResultBlock(call.id, (TextBlock(results[index % len(results)][0]),), results[index % len(results)][1])
            for index, call in enumerate(calls)
        )
        messages += [ModelMessage(Role.ASSISTANT, reply.blocks), ModelMessage(Role.USER, answers)]
    raise AssertionError("the guide goes on and on")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TYPED, st.lists(RESULT, min_size=1, max_size=4))
def test_every_turn_ends_within_the_bound(typed: str, results: list[tuple[str, bool]]) -> None:
    assert asyncio.run(_rounds(typed, results)) <= ROUNDS


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            ModelMessage,
            st.sampled_from([Role.USER, Role.ASSISTANT]),
            st.lists(
                st.one_of(
                    st.builds(TextBlock, st.text(max_size=20)),
                    st.builds(ToolUseBlock, st.sampled_from("ab"), st.just("bash"), st.text(max_size=10)),
                    st.builds(ToolResultBlock, st.sampled_from("ab"), st.just((TextBlock("x"),)), st.booleans()),
                ),
                max_size=3,
            ).map(tuple),
        ),
        max_size=6,
    )
)
def test_every_history_gets_an_answer(messages: list[ModelMessage]) -> None:
    assert asyncio.run(_reply(messages)).blocks
