"""The JSON protocol for servers without tools, as values."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import ToolUseBlock
from engine.ports import TextDelta, ToolCallDelta
from engine.providers.openai_compatible.json_protocol import (
    JsonStep,
    StepReader,
    answer,
    prompt,
    response_format,
    result,
)
from tools.contract import ToolClass, ToolSpec

BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {}}}, ToolClass.RUN)


def read(*pieces: str, cut: bool = False) -> tuple[str, JsonStep]:
    """The text that was shown while it came, and what the whole answer means."""
    reader = StepReader()
    shown = [item.text for piece in pieces for item in reader.feed(piece) if isinstance(item, TextDelta)]
    return "".join(shown), reader.finish(cut=cut)


@given(st.text(max_size=40), st.booleans(), st.integers(1, 9))
def test_any_reply_in_any_pieces_is_shown_as_it_is_meant(text: str, ascii_only: bool, size: int) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8")
    written = json.dumps({"reply": text}, ensure_ascii=ascii_only)
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    assert read(*pieces) == (text, JsonStep(text))


def test_a_call_in_single_characters_is_announced_once_and_read_whole() -> None:
    written = ' { "tool" : "bash" , "arguments" : {"command": "ls"} }'
    reader = StepReader()
    items = [item for character in written for item in reader.feed(character)]
    assert [item.name for item in items if isinstance(item, ToolCallDelta) and item.name] == ["bash"]
    assert not any(isinstance(item, TextDelta) for item in items)
    assert reader.finish(cut=False) == JsonStep(calls=[("", "bash", '{"command":"ls"}')])


def test_text_behind_the_reply_is_not_shown() -> None:
    assert read('{"reply": "done"}', " and more")[0] == "done"


def test_an_object_of_another_shape_is_a_reply_as_it_stands() -> None:
    assert read('{"answer": 42}') == ("", JsonStep('{"answer": 42}'))


def test_arguments_that_are_no_object_stay_for_the_model_to_see() -> None:
    assert read('{"tool": "bash", "arguments": "ls"}')[1] == JsonStep(calls=[("", "bash", "ls")])


def test_the_prompt_names_tools_and_shows_examples_of_those_on_offer() -> None:
    protocol = prompt(("static",), (BASH,))[1]
    assert "- bash(command): Run a command." in protocol
    assert '{"tool":"bash","arguments":{"command":"whoami"}}' in protocol
    assert "read_file" not in protocol


def test_the_schema_allows_each_tool_and_a_reply() -> None:
    schema = json.loads(json.dumps(response_format((BASH,))))["json_schema"]["schema"]
    assert [list(choice["properties"]) for choice in schema["anyOf"]] == [["tool", "arguments"], ["reply"]]


def test_earlier_answers_and_results_are_written_in_the_protocol() -> None:
    assert answer("text", ()) == '{"reply":"text"}'
    assert (
        answer("", [ToolUseBlock("a", "bash", '{"command": "ls"}')]) == '{"tool":"bash","arguments":{"command":"ls"}}'
    )
    assert result("bash", "out", is_error=True) == "bash failed:\nout"
