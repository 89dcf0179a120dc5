"""The part of the system prompt that changes between calls ends the last message, in every form a body can have."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.messages import ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.providers.openai_compatible.dialect import Dialect
from engine.providers.openai_compatible.to_wire import request_body
from tests.support.loopback_anthropic import TINY_PNG
from tools.contract import ToolClass, ToolSpec

TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)
GO = ModelMessage(Role.USER, (TextBlock("go"),))
CALL = ModelMessage(Role.ASSISTANT, (ToolUseBlock("a", "bash", "{}"),))
RESULT = ModelMessage(Role.USER, (ToolResultBlock("a", (TextBlock("made"),)),))
PICTURE = ModelMessage(Role.USER, (ImageBlock("i", 1, 1), TextBlock("look")))
REQUEST = ModelRequest("m", ("static", "Mode: ask."), (GO,), (TOOL,), {"i": ImageBytes("image/png", TINY_PNG)})


def messages(asked: ModelRequest, dialect: Dialect) -> Any:
    return request_body(asked, dialect)["messages"]


@pytest.mark.parametrize("protocol", ["native", "json"])
@pytest.mark.parametrize("last", [(GO,), (GO, CALL, RESULT), (PICTURE,), (GO, ModelMessage(Role.ASSISTANT, ()))])
def test_a_changed_mode_changes_the_end_of_the_last_message_alone(
    protocol: Any, last: tuple[ModelMessage, ...]
) -> None:
    dialect = replace(Dialect(), tool_protocol=protocol)
    asked = messages(replace(REQUEST, messages=last), dialect)
    changed = messages(replace(REQUEST, messages=last, system=("static", "Mode: auto.")), dialect)
    assert asked[:-1] == changed[:-1]
    assert [message["role"] for message in asked] == [message["role"] for message in changed]
    before = messages(replace(REQUEST, messages=last, system=("static",)), dialect)
    for body, words in ((asked, "Mode: ask."), (changed, "Mode: auto.")):
        content = body[-1]["content"]
        if isinstance(content, list):
            assert content == [*before[-1]["content"], {"type": "text", "text": words}]
        else:
            assert content == f"{before[-1]['content']}\n\n{words}"
