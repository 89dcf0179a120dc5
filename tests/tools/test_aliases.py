"""Tool calls in the names and fields of other agents, their titles, and arguments that make no sense."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plain_runner import PlainRunner
from tests.support.tools import MemoryJobs
from tools.aliases import (
    FOREIGN,
    KEPT,
    NATIVE,
    SHAPES,
    WITHOUT,
    TranslatedCall,
    from_foreign,
    native_name,
    native_names,
    to_foreign,
)
from tools.bash import BashInput
from tools.call_titles import call_title, show_arguments, tool_label
from tools.contract import JsonObject, ToolInputError
from tools.displays import TodoStatus
from tools.file_tools import PatchInput, ReadFileInput
from tools.files.writing import ReadLedger
from tools.images.decoder import ImageDecoder
from tools.registry import ToolDependencies, build_tools
from tools.search import ListFilesInput, SearchInput

CWD = Path("/work/project")


def there(name: str, **args: Any) -> tuple[str, JsonObject]:
    call = to_foreign(name, args, CWD)
    return call.name, call.input


def back(name: str, args: JsonObject) -> tuple[str, JsonObject]:
    call = from_foreign(name, args, CWD)
    return call.name, call.input


PAIRS: list[tuple[str, JsonObject, str, JsonObject]] = [
    ("bash", {"command": "ls"}, "Bash", {"command": "ls"}),
    ("bash", {"command": "x", "timeout": 30, "background": True}, "Bash",
     {"command": "x", "timeout": 30_000, "run_in_background": True}),
    ("bash", {"command": "x", "timeout": 1.5}, "Bash", {"command": "x", "timeout": 1_500}),
    ("bash", {"command": "x", "slow": True, "access": "network", "why": "y"}, "Bash",
     {"command": "x", "slow": True, "access": "network", "why": "y"}),
    ("read_file", {"path": "a.py"}, "Read", {"file_path": "/work/project/a.py"}),
    ("read_file", {"path": "/etc/hosts", "offset": 3, "limit": 9}, "Read",
     {"file_path": "/etc/hosts", "offset": 3, "limit": 9}),
    ("read_file", {"path": "link/../a"}, "Read", {"file_path": "/work/project/link/../a"}),
    ("read_image", {"path": "a.png"}, "Read", {"file_path": "/work/project/a.png"}),
    ("write_file", {"path": "a", "content": "x"}, "Write", {"file_path": "/work/project/a", "content": "x"}),
    ("patch", {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "y"}]}, "Edit",
     {"file_path": "/work/project/a", "old_string": "x", "new_string": "y"}),
    ("patch", {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "y"}, {"op": "append", "new": "z"}]},
     "MultiEdit", {"file_path": "/work/project/a", "edits": [{"old_string": "x", "new_string": "y"},
                                                            {"old_string": "", "new_string": "z"}]}),
    ("patch", {"path": "a", "edits": [{"op": "append", "new": "z"}]}, "Edit",
     {"file_path": "/work/project/a", "old_string": "", "new_string": "z"}),
    ("list_files", {}, "Glob", {"pattern": "**/*"}),
    ("list_files", {"path": "src", "glob": "*.py", "ignored": True}, "Glob",
     {"path": "/work/project/src", "pattern": "*.py", "ignored": True}),
    ("search", {"pattern": "x", "path": ".", "glob": "*.py", "ignore_case": True, "context": 2}, "Grep",
     {"pattern": "x", "path": "/work/project", "glob": "*.py", "-i": True, "-C": 2}),
    ("job_output", {"job_id": "j1"}, "TaskOutput", {"task_id": "j1"}),
    ("job_kill", {"job_id": "j1"}, "TaskStop", {"task_id": "j1"}),
    ("spawn_agents", {"tasks": [{"task": "look", "profile": "general"}]}, "Agent",
     {"description": "look", "prompt": "look", "subagent_type": "general-purpose"}),
    ("spawn_task", {"task_description": "look", "initial_prompt": "look well", "profile": "explore"}, "Agent",
     {"description": "look", "prompt": "look well", "subagent_type": "explore", "run_in_background": True}),
    ("exit_plan", {"plan": "# x"}, "ExitPlanMode", {"plan": "# x"}),
    ("todo_write", {"todos": []}, "TodoWrite", {"todos": []}),
    ("ask_user", {"questions": []}, "AskUserQuestion", {"questions": []}),
    ("web_fetch", {"url": "u", "prompt": "p"}, "WebFetch", {"url": "u", "prompt": "p"}),
    ("web_search", {"query": "q"}, "WebSearch", {"query": "q"}),
    ("skill", {"skill": "s"}, "Skill", {"skill": "s"}),
    ("tool_search", {"query": "q", "max_results": 3}, "ToolSearch", {"query": "q", "max_results": 3}),
    ("submit_structured", {"any": 1}, "StructuredOutput", {"any": 1}),
    ("think", {"thoughts": "x"}, "think", {"thoughts": "x"}),
    ("mcp__a__b", {"file_path": "x"}, "mcp__a__b", {"file_path": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "foreign", "fields"), PAIRS)
def test_a_call_is_the_same_in_both_languages(name: str, args: JsonObject, foreign: str, fields: JsonObject) -> None:
    assert there(name, **args) == (foreign, fields)
    assert back(foreign, fields) == (name, args)


@pytest.mark.parametrize(
    ("name", "args", "fields"),
    [
        ("patch", {"path": "a", "edits": [{"op": "overwrite", "new": "z"}]},
         {"file_path": "/work/project/a", "content": "z"}),
        ("patch", {"path": "a", "edits": [{"op": "prepend", "new": "z"}]},
         {"file_path": "/work/project/a", "old_string": "", "new_string": "z"}),
        ("read_file", {"path": "/work/project/a"}, {"file_path": "/work/project/a"}),
        ("read_file", {"path": "./a"}, {"file_path": "/work/project/a"}),
        ("read_file", {"path": "a.png"}, {"file_path": "/work/project/a.png"}),
        ("spawn_agents", {"tasks": [{"task": "x", "priority": "high"}], "strategy": "parallel"},
         {"description": "x", "prompt": "x"}),
    ],
)  # fmt: skip
def test_what_the_foreign_fields_cannot_say_travels_beside_them(
    name: str, args: JsonObject, fields: JsonObject
) -> None:
    call = to_foreign(name, args, CWD)
    assert {field: value for field, value in call.input.items() if field != KEPT} == fields
    assert call.input[KEPT] == {"tool": name, "input": args}
    assert back(call.name, call.input) == (name, args)


def test_a_changed_call_is_read_by_its_fields_and_not_by_what_travels_beside_them() -> None:
    call = to_foreign("patch", {"path": "a", "edits": [{"op": "overwrite", "new": "z"}]}, CWD)
    assert back("Write", {**call.input, "content": "y"}) == ("write_file", {"path": "a", "content": "y"})
    hidden: JsonObject = {"command": "ls", KEPT: {"tool": "bash", "input": {"command": "rm -rf /"}}}
    assert back("Bash", hidden) == ("bash", {"command": "ls"})
    other: JsonObject = {"command": "ls", KEPT: {"tool": "write_file", "input": {"path": "x", "content": ""}}}
    assert back("Bash", other) == ("bash", {"command": "ls"})


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("Task", {"description": "d", "prompt": "p"}, ("spawn_agents", {"tasks": [{"task": "p"}]})),
        ("Bash", {"command": "x", "description": "d"}, ("bash", {"command": "x"})),
        ("Bash", {"command": "x", "timeout": 10}, ("bash", {"command": "x", "timeout": 1})),
        ("Bash", {"command": "x", "dangerouslyDisableSandbox": True}, ("bash", {"command": "x", "access": "outside"})),
        ("Bash", {"command": "x", "dangerouslyDisableSandbox": False}, ("bash", {"command": "x"})),
        ("Read", {"file_path": "/work/project", "offset": 0}, ("read_file", {"path": "."})),
        ("Read", {"path": "a"}, ("read_file", {"path": "a"})),
        ("Read", {"file_path": "/work/projectx/a"}, ("read_file", {"path": "/work/projectx/a"})),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
         ("patch", {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "y"}]})),
        ("Grep", {"pattern": "x", "output_mode": "content", "-n": True, "-A": 1, "-B": 3},
         ("search", {"pattern": "x", "context": 3})),
        ("Grep", {"pattern": "x", "head_limit": 5, "context": 2}, ("search", {"pattern": "x", "context": 2})),
        ("LS", {"path": "/work/project/a"}, ("list_files", {"path": "a"})),
        ("KillShell", {"shell_id": "j"}, ("job_kill", {"job_id": "j"})),
        ("BashOutput", {"bash_id": "j", "block": True}, ("job_output", {"job_id": "j"})),
        ("read_file", {"file_path": "/work/project/a"}, ("read_file", {"path": "a"})),
        ("read_file", {"file_path": "/work/project/a.png"}, ("read_file", {"path": "a.png"})),
        ("write_file", {"file_path": "a", "content": "x"}, ("write_file", {"path": "a", "content": "x"})),
        ("patch", {"file_path": "a", "old_string": "x", "new_string": "y"},
         ("patch", {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "y"}]})),
        ("patch", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]},
         ("patch", {"path": "a", "edits": [{"op": "replace", "old": "x", "new": "y"}]})),
        ("search", {"pattern": "x", "-i": True}, ("search", {"pattern": "x", "ignore_case": True})),
        ("bash", {"command": "x", "run_in_background": True, "timeout": 60},
         ("bash", {"command": "x", "background": True, "timeout": 60})),
        ("bash", {"command": "x", "description": "d", "timeout": 60_000}, ("bash", {"command": "x", "timeout": 60})),
        ("spawn_agents", {"prompt": "p", "subagent_type": "explore"},
         ("spawn_agents", {"tasks": [{"task": "p", "profile": "explore"}]})),
        ("bash", {"command": "x", "timeout": 60_000}, ("bash", {"command": "x", "timeout": 60_000})),
        ("Unknown", {"x": 1}, ("Unknown", {"x": 1})),
    ],
)  # fmt: skip
def test_calls_as_models_and_hooks_write_them_become_native(
    name: str, args: JsonObject, expected: tuple[str, JsonObject]
) -> None:
    assert back(name, args) == expected


@pytest.mark.parametrize(
    ("name", "args", "native"),
    [
        ("Grep", {"pattern": "x", "output_mode": "count"}, "list_files with glob"),
        ("Grep", {"pattern": "x", "multiline": True}, "matches pattern in each line"),
        ("Grep", {"pattern": "x", "type": "py"}, "search takes glob"),
        ("Agent", {"prompt": "x", "model": "opus"}, "the profile of a sub-agent sets its model"),
        ("Agent", {"prompt": "x", "isolation": "worktree"}, "spawn_agents takes tasks"),
        ("Read", {"file_path": "x", "pages": "1-5"}, "read_file takes path, offset, limit"),
        ("Edit", {"file_path": "x", "odd": 1}, "patch takes path and edits, each with op, old and new"),
        ("MultiEdit", {"file_path": "x", "edits": [{"odd": 1}]}, "patch takes path and edits"),
        ("NotebookEdit", {}, "such as patch"),
        ("Bash", {"command": "x", "shell": "zsh"}, "bash takes command, timeout, background, access, hosts, slow, why"),
    ],
)
def test_a_field_without_a_counterpart_is_an_error_that_names_the_native_form(
    name: str, args: JsonObject, native: str
) -> None:
    with pytest.raises(ToolInputError, match=native):
        from_foreign(name, args, CWD)


def test_names_are_one_table() -> None:
    assert {native_name(name) for name in NATIVE} <= set(FOREIGN)
    assert set(FOREIGN) == {*NATIVE.values(), "read_image", "spawn_task"}
    assert not WITHOUT & set(NATIVE)
    assert set(SHAPES) < set(NATIVE)
    assert (native_name("Bash"), native_name("bash"), native_name("x")) == ("bash", "bash", "x")
    assert native_names("Read") == ("read_file", "read_image")
    assert native_names("Read", widely=True) == ("read_file", "read_image", "search", "list_files")
    assert native_names("Write") == ("write_file",)
    assert native_names("patch", widely=True) == ("patch",)


# Properties.

TEXT = st.text(max_size=20)
PATHS = st.one_of(
    TEXT,
    st.lists(st.sampled_from(["a", "b.py", "x.png", "..", ".", "", "work", "project", "~", "$'a'"]), max_size=5).map(
        "/".join
    ),
    st.sampled_from(["/work/project", "/work/project/", "/work/project/a", "/work/projectx", "/", ".", ""]),
)


def made(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=optional)


LIMITS = {"profile": TEXT, "max_turns": st.integers(0, 250), "timeout": st.floats(0, 86_400)}
EDIT = st.one_of(
    made({"op": st.just("replace"), "old": TEXT, "new": TEXT}),
    made({"op": st.sampled_from(["append", "prepend", "overwrite"]), "new": TEXT}, old=TEXT),
)
INPUTS: dict[str, st.SearchStrategy[Any]] = {
    "bash": made({"command": TEXT}, timeout=st.one_of(st.integers(1, 900), st.floats(1, 900)), slow=st.booleans(),
                 background=st.booleans(), access=st.sampled_from(["network", "outside"]), why=TEXT),
    "read_file": made({"path": PATHS}, offset=st.integers(1, 2**53), limit=st.integers(1, 2_000)),
    "read_image": made({"path": PATHS}),
    "write_file": made({"path": PATHS, "content": TEXT}),
    "patch": made({"path": PATHS, "edits": st.lists(EDIT, min_size=1, max_size=3)}),
    "list_files": made({}, path=PATHS, glob=TEXT, ignored=st.booleans()),
    "search": made({"pattern": TEXT}, path=PATHS, glob=TEXT, ignore_case=st.booleans(), context=st.integers(0, 10)),
    "job_output": made({"job_id": TEXT}),
    "job_kill": made({"job_id": TEXT}),
    "think": made({"thoughts": TEXT}),
    "todo_write": made({"todos": st.lists(made({"content": TEXT, "status": st.sampled_from(list(TodoStatus))},
                                               activeForm=TEXT), max_size=3)}),
    "exit_plan": made({"plan": TEXT}),
    "spawn_agents": made({"tasks": st.lists(made({"task": TEXT}, priority=TEXT, **LIMITS), min_size=1, max_size=3)},
                         strategy=st.sampled_from(["parallel", "sequential"])),
    "spawn_task": made({}, task_description=TEXT, initial_prompt=TEXT, task_id=TEXT, message=TEXT, **LIMITS),
    "ask_user": made({"questions": st.lists(made({"question": TEXT}), max_size=2)}),
    "skill": made({"skill": TEXT}, args=TEXT),
    "tool_search": made({"query": TEXT}, max_results=st.integers(1, 50)),
    "web_fetch": made({"url": TEXT}, prompt=TEXT, offset=st.integers(0, 10**6)),
    "web_search": made({"query": TEXT}, allowed_domains=st.lists(TEXT, max_size=2)),
    "submit_structured": st.dictionaries(TEXT, st.integers() | TEXT, max_size=3),
    "memory_get": made({"path": TEXT}, from_line=st.integers(1, 9)),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
@given(data=st.data())
def test_there_and_back_again_is_the_very_same_call(name: str, data: st.DataObject) -> None:
    args = data.draw(INPUTS[name])
    call = to_foreign(name, args, CWD)
    assert from_foreign(call.name, call.input, CWD) == TranslatedCall(name, args)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["command", "timeout", "file_path", "path", "edits", "old_string", "new_string", "op", "old", "new", "prompt",
     "tasks", "pattern", "-A", "-C", "output_mode", "glob", "offset", "limit", KEPT, "tool", "input",
     "run_in_background", "todos", "task_id", "subagent_type", "content", "questions", "multiline", "type", "model", ""]
)  # fmt: skip
HOSTILE = st.dictionaries(
    FIELDS,
    JSON | st.dictionaries(FIELDS, JSON, max_size=3) | st.lists(st.dictionaries(FIELDS, JSON, max_size=3), max_size=3),
    max_size=5,
)


@given(st.sampled_from(sorted({*NATIVE, *FOREIGN, *WITHOUT, "odd"})) | TEXT, HOSTILE)
def test_a_hostile_input_gives_a_call_or_the_written_error(name: str, args: JsonObject) -> None:
    for translate in (from_foreign, to_foreign):
        try:
            call = translate(name, args, CWD)
        except ToolInputError as error:
            assert str(error)
        else:
            assert isinstance(call.input, dict)


@pytest.mark.parametrize("args", [None, [], "x", 1, {1: 2}, {None: 1}])
@pytest.mark.parametrize("name", ["Bash", "bash", "Edit", ""])
def test_what_is_no_object_is_refused_in_words(name: str, args: object) -> None:
    for translate in (from_foreign, to_foreign):
        with pytest.raises(ToolInputError, match="must be a JSON object"):
            translate(name, cast("JsonObject", args), CWD)


def test_huge_inputs_are_translated_or_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for name in ("Edit", "Bash", "bash", "odd"):
        with pytest.raises(ToolInputError, match="nested too deeply"):
            from_foreign(name, {"edits": deep}, CWD)
    for number in (10**5_000, -(10**5_000), math.inf, math.nan, -math.inf, 1e308):
        assert from_foreign("Bash", {"command": "x", "timeout": number}, CWD).name == "bash"
        assert to_foreign("bash", {"command": "x", "timeout": number}, CWD).name == "Bash"
        assert from_foreign("bash", {"description": "x", "timeout": number}, CWD).name == "bash"
    text = "x/" * 1_000_000
    assert from_foreign("Write", {"file_path": text, "content": text}, CWD).input["content"] == text
    with pytest.raises(ToolInputError) as raised:
        from_foreign("Read", {"\x1b" + "x" * 10**6: 1}, CWD)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("bash", "bash"),
        ("mcp__demo__echo", "demo: echo"),
        ("mcp__a__b__c", "a: b__c"),
        ("mcp__demo", "demo"),
        ("mcp__", "mcp__"),
        ("mcp____", "mcp____"),
        ("", ""),
    ],
)
def test_a_tool_of_a_server_is_named_by_server_and_tool(name: str, label: str) -> None:
    assert tool_label(name) == label


def test_a_title_has_the_tool_once() -> None:
    assert call_title("mcp__demo__echo", '{"text": "hi"}', 'demo: echo {"text": "hi"}') == "demo: echo hi"
    assert call_title("mcp__demo__echo", "{}") == "demo: echo"
    assert call_title("bash", '{"command": "make test"}', "make test", "  ") == "bash  make test"
    assert call_title("think", "{}", "think") == "think"


def test_arguments_that_are_no_object_are_shown_as_they_are_and_within_a_bound() -> None:
    assert call_title("mcp__a__b", "[1, 2") == "a: b [1, 2"
    assert call_title("mcp__a__b", '{"x": "\u001b[31m\nred"}').isprintable()
    assert len(call_title("mcp__a__b", json.dumps({"x": "y" * 100_000}))) < 420
    for depth in (900, 30_000):
        assert call_title("mcp__a__b", f'{{"x": {"[" * depth}{"]" * depth}}}').endswith("[[[…")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, ""),
        ({"text": "two words"}, "two words"),
        ({"count": 3}, "3"),
        ({"owner": "a", "title": "b c", "draft": True}, 'owner=a title="b c" draft=true'),
        ({"a": "x=1", "b": 'y"'}, 'a="x=1" b="y\\""'),
    ],
)
def test_arguments_of_a_server_are_on_one_line_and_cannot_pass_for_each_other(args: JsonObject, words: str) -> None:
    assert show_arguments(args) == words


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
