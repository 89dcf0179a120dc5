"""A schema that a service refuses is mended, then left out; the turn goes on (FAULTS 124)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.ports import ModelRequest, ProviderError
from engine.providers.refusals import RefusedTools, simpler
from tools.contract import ToolClass, ToolSpec

ODD: dict[str, Any] = {
    "type": "object",
    "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "integer", "exclusiveMinimum": True}}}],
    "properties": {"a": {"type": "strng", "description": "A."}, "$.x": {"type": "string"}, "l": {"items": [{}]}},
    "required": ["a", "$.x"],
}


def request_with(*names: str) -> ModelRequest:
    """A request with these tools."""
    tools = tuple(ToolSpec(name, "", ODD, ToolClass.RUN) for name in names)
    return ModelRequest("m", (), (), tools=tools)


def refusal(message: str) -> ProviderError:
    """A refusal of the request."""
    return ProviderError(message, kind="invalid_request", retryable=False)


def test_a_simpler_schema_keeps_names_types_and_descriptions() -> None:
    assert simpler(ODD) == {
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"description": "A."}, "l": {}},
        "required": ["a"],
    }


@pytest.mark.parametrize(
    "message",
    ["tools.1.custom.input_schema: JSON schema is invalid", "Invalid schema for function 'mcp__srv__bad': no anyOf"],
)
def test_the_named_tool_is_mended_and_then_left_out(message: str) -> None:
    refused, request = RefusedTools(), request_with("bash", "mcp__srv__bad", "mcp__srv__good")
    assert refused.leave_out_refused(request) == request
    first = refused.notice(request, refusal(message))
    assert first is not None
    assert first.text == "The service refuses the schema of bad of MCP server 'srv'; asked with a simpler one."
    asked = refused.leave_out_refused(request)
    assert [tool.input_schema for tool in asked.tools] == [ODD, simpler(ODD), ODD]
    second = refused.notice(request, refusal(message))
    assert second is not None
    assert "left out" in second.text
    assert [tool.name for tool in refused.leave_out_refused(request).tools] == ["bash", "mcp__srv__good"]


def test_a_refusal_that_names_no_tool_mends_all_of_servers_once() -> None:
    refused, request = RefusedTools(), request_with("bash", "mcp__a__x", "mcp__b__y")
    assert refused.notice(request, refusal("max_tokens: too large")) is None
    notice = refused.notice(request, refusal("a tool has an invalid schema"))
    assert notice is not None
    assert "x of MCP server 'a', y of MCP server 'b'" in notice.text
    assert refused.notice(request, refusal("a tool has an invalid schema")) is None


def test_a_refusal_of_a_tool_of_phoenix_is_an_error() -> None:
    refused, request = RefusedTools(), request_with("bash", "mcp__a__x")
    assert refused.notice(request, refusal("tools.0.custom.input_schema: bad schema")) is None
