"""Arguments that make no sense are refused with a sentence that names the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plain_runner import PlainRunner
from tests.support.tools import MemoryJobs
from tools.bash import BashInput
from tools.contract import JsonObject, ToolInputError
from tools.file_tools import PatchInput, ReadFileInput
from tools.files.writing import ReadLedger
from tools.images.decoder import ImageDecoder
from tools.registry import ToolDependencies, build_tools
from tools.search import ListFilesInput, SearchInput


@pytest.mark.parametrize(
    ("parse", "args", "sentence"),
    [
        (BashInput.parse, {}, "The argument command is missing."),
        (BashInput.parse, {"command": None}, "The argument command is missing."),
        (BashInput.parse, {"command": ["ls"]}, "command must be a string, not a list."),
        (BashInput.parse, {"command": "ls", "timeout": "5"}, "timeout must be a number, not a string."),
        (BashInput.parse, {"command": "ls", "timeout": True}, "timeout must be a number, not a boolean."),
        (BashInput.parse, {"command": "ls", "timeout": 901}, "timeout must be between 1 and 900, not 901."),
        (BashInput.parse, {"command": "ls", "background": 1}, "background must be true or false, not the number 1."),
        (BashInput.parse, {"command": " \n"}, "The argument command is empty."),
        (BashInput.parse, {"command": "a\0b"}, "The argument command contains a NUL character."),
        (BashInput.parse, {"command": "a\ud800"}, "command contains half a character (a lone surrogate)."),
        (
            BashInput.parse,
            {"command": "ls", "cwd": "/"},
            "Unknown argument cwd; known are: command, timeout, slow, background, access, why, hosts.",
        ),
        (ReadFileInput.parse, {"path": "a", "offset": 1.5}, "offset must be a whole number, not the number 1.5."),
        (ReadFileInput.parse, {"path": "a", "limit": 0}, "limit must be between 1 and 2000, not 0."),
        (
            SearchInput.parse,
            {"pattern": ""},
            "pattern must be one non-empty line; every line of a file is matched for itself.",
        ),
        (ListFilesInput.parse, {"glob": "{a"}, "The glob {a is malformed; use *, ?, **, [ab] and {a,b}."),
        (PatchInput.parse, {"path": "a"}, "The argument edits is missing."),
        (
            PatchInput.parse,
            {"path": "a", "edits": []},
            "edits must be a list with at least one object, not an empty list.",
        ),
        (PatchInput.parse, {"path": "a", "edits": ["x"]}, "edits[0] must be an object, not a string."),
        (
            PatchInput.parse,
            {"path": "a", "edits": [{"op": "move", "new": ""}]},
            "edits[0].op must be one of replace, append, prepend, overwrite, not move.",
        ),
        (PatchInput.parse, {"path": "a", "edits": [{"op": "append"}]}, "The argument edits[0].new is missing."),
        (
            PatchInput.parse,
            {"path": "a", "edits": [{"op": "replace", "old": "", "new": "x"}]},
            "edits[0].old is empty; to set the whole content use the op overwrite.",
        ),
        (
            PatchInput.parse,
            {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "x"}]},
            "edits[0].old and new are the same; nothing would change.",
        ),
    ],
)
def test_a_mistake_is_named(parse: type, args: JsonObject, sentence: str) -> None:
    with pytest.raises(ToolInputError) as caught:
        parse(args)
    assert str(caught.value) == sentence


def test_a_whole_number_may_come_as_a_float() -> None:
    assert ReadFileInput.parse({"path": "a", "offset": 3.0}) == ReadFileInput("a", 3, 2000)


async def test_every_tool_refuses_unknown_arguments_and_describes_itself(tmp_path: Path) -> None:
    runner = PlainRunner()
    tools = build_tools(ToolDependencies(runner, MemoryJobs(), ImageDecoder(runner), ReadLedger(), tmp_path))
    assert list(tools) == [
        "bash", "job_output", "job_kill", "read_file", "list_files",
        "search", "write_file", "patch", "read_image", "think", "todo_write", "exit_plan",
        "ask_user", "web_fetch", "web_search",
    ]  # fmt: skip
    for name, tool in tools.items():
        assert tool.spec.name == name
        assert tool.spec.description.endswith(".")
        assert tool.spec.input_schema["additionalProperties"] is False
        with pytest.raises(ToolInputError, match="Unknown argument nonsense"):
            await tool.request({"nonsense": 1}, tmp_path)
