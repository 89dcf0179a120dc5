"""Calls in the words of other agents: names of tools, and their inputs as those of our own."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias, cast

from msgspec import Struct

from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue, ToolInputError
from tools.images.contract import IMAGE_SUFFIXES
from tools.wording import one_line

NATIVE: Final[Mapping[str, str]] = {
    "Bash": "bash",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "patch",
    "MultiEdit": "patch",
    "Glob": "list_files",
    "LS": "list_files",
    "Grep": "search",
    "TaskOutput": "job_output",
    "BashOutput": "job_output",
    "TaskStop": "job_kill",
    "KillShell": "job_kill",
    "KillBash": "job_kill",
    "Agent": "spawn_agents",
    "Task": "spawn_agents",
    "AskUserQuestion": "ask_user",
    "ExitPlanMode": "exit_plan",
    "TodoWrite": "todo_write",
    "Skill": "skill",
    "ToolSearch": "tool_search",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "StructuredOutput": "submit_structured",
}
"""The tool that a foreign name means where the input does not say more."""
FOREIGN: Final[Mapping[str, str]] = {
    **{native: name for name, native in reversed(list(NATIVE.items()))},
    "read_image": "Read",
    "spawn_task": "Agent",
}
"""The name of each tool elsewhere; for `patch` and what spawns the input decides."""
WITHOUT: Final = frozenset({"NotebookEdit", "NotebookRead", "SlashCommand", "EnterPlanMode", "EnterWorktree"})
"""Foreign tools without a counterpart."""
_READS: Final = ("read_file", "read_image")
_SPAWNS: Final = ("spawn_agents", "spawn_task")
_SEVERAL: Final[Mapping[str, tuple[str, ...]]] = {
    "Read": _READS,
    "Edit": ("patch", "write_file"),
    "Agent": _SPAWNS,
    "Task": _SPAWNS,
}
_WIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "Read": (*_READS, "search", "list_files"),
    "Write": ("write_file", "patch"),
    "MultiEdit": ("patch", "write_file"),
}
"""Names in rules that deny mean more: whoever may not read a file there, may not search it either."""


def native_name(name: str) -> str:
    """The tool that a name means; a name that is not foreign means itself."""
    return NATIVE.get(name, name)


def native_names(name: str, *, widely: bool = False) -> tuple[str, ...]:
    """Every tool that a name in a list or rule means, `widely` in one that denies."""
    return (_WIDE.get(name) if widely else None) or _SEVERAL.get(name) or (native_name(name),)


NamedCall: TypeAlias = tuple[str, JsonObject]
"""Name of a tool and its input."""
ALL_FILES: Final = "**/*"
GENERAL: Final = ("general-purpose", "general")
"""The profile of an agent for which none is named: elsewhere, here."""
MILLISECONDS: Final = 1_000
LONGEST_DESCRIPTION: Final = 60
_NO_FIELD: Final = "{field} of {name} has no counterpart here; {tool} takes {native}."


class Shape(Struct, frozen=True):
    """Fields of one foreign tool."""

    tool: str
    fields: Mapping[str, str] = {}
    """Native field by foreign field."""
    kept: frozenset[str] = frozenset()
    """Native fields that keep their name."""
    dropped: frozenset[str] = frozenset()
    """Foreign fields without an effect here."""
    path: str = ""
    """Native field that is a path: absolute elsewhere."""

    @property
    def native(self) -> str:
        """Native fields, in words."""
        return ", ".join(dict.fromkeys((*self.fields.values(), *sorted(self.kept))))


def _shape(tool: str, fields: Mapping[str, str], kept: str = "", dropped: str = "", path: str = "") -> Shape:
    return Shape(tool, fields, frozenset(kept.split()), frozenset(dropped.split()), path)


_JOB: Final = {"task_id": "job_id", "bash_id": "job_id", "shell_id": "job_id"}
_FILE: Final = {"file_path": "path"}
SHAPES: Final[Mapping[str, Shape]] = {
    "Bash": _shape(
        "bash",
        {"command": "command", "timeout": "timeout", "run_in_background": "background"},
        "slow access why hosts",
        "description",
    ),
    "Read": _shape("read_file", {**_FILE, "offset": "offset", "limit": "limit"}, path="path"),
    "Write": _shape("write_file", {**_FILE, "content": "content"}, path="path"),
    "Glob": _shape("list_files", {"pattern": "glob", "path": "path"}, "ignored", path="path"),
    "LS": _shape("list_files", {"path": "path"}, "ignored", path="path"),
    "Grep": _shape(
        "search", {"pattern": "pattern", "path": "path", "glob": "glob", "-i": "ignore_case", "-C": "context"},
        "", "-n head_limit", "path",
    ),
    **{name: _shape("job_output", _JOB, "", "block timeout wait_up_to") for name in ("TaskOutput", "BashOutput")},
    **{name: _shape("job_kill", _JOB) for name in ("TaskStop", "KillShell", "KillBash")},
    "AskUserQuestion": _shape("ask_user", {"questions": "questions"}, "", "answers metadata"),
    "ExitPlanMode": _shape("exit_plan", {"plan": "plan"}, "", "allowedPrompts"),
    "TodoWrite": _shape("todo_write", {"todos": "todos"}),
    "Skill": _shape("skill", {"skill": "skill", "args": "args"}),
    "ToolSearch": _shape("tool_search", {"query": "query", "max_results": "max_results"}),
    "WebFetch": _shape("web_fetch", {"url": "url", "prompt": "prompt"}, "offset"),
    "WebSearch": _shape(
        "web_search",
        {"query": "query", "allowed_domains": "allowed_domains", "blocked_domains": "blocked_domains"},
    ),
}  # fmt: skip
"""Foreign tools whose fields correspond one to one; the others have functions of their own."""


def quotable(name: str) -> str:
    """A name in a sentence: short, on one line, without control characters."""
    return clean_line(one_line(name, LONGEST_DESCRIPTION)).encode("utf-8", "replace").decode()


def absolute(path: JsonValue, cwd: str) -> JsonValue:
    """A path as other agents write it; `~` and names that are quoted stay as they are."""
    if not isinstance(path, str) or path.startswith(("~", "$'")):
        return path
    return _tidy(posixpath.join(cwd, path))


def relative(path: JsonValue, cwd: str) -> JsonValue:
    """A path as Phoenix's model writes it: relative inside the working directory."""
    if not isinstance(path, str) or not path.startswith("/"):
        return path
    clean, folder = _tidy(path), cwd.rstrip("/")
    if clean == (folder or "/"):
        return "."
    return clean[len(folder) + 1 :] if clean.startswith(f"{folder}/") else path


def _tidy(path: str) -> str:
    """An absolute path without empty parts; `..` stays, as what it means depends on links."""
    return "/" + "/".join(part for part in path.split("/") if part not in {"", "."})


def outward(name: str, args: JsonObject, cwd: str) -> NamedCall:
    """The call as other agents write it, as far as their fields go."""
    special = _OUTWARD.get(name)
    if special is not None:
        return special(args, cwd)
    foreign = _NAMES.get(name)
    if foreign is None:
        return name, args
    return foreign, _fields_out(SHAPES[foreign], args, cwd) if foreign in SHAPES else args


def inward(name: str, args: JsonObject, cwd: str) -> NamedCall:
    """The call as Phoenix has it.

    Raises:
        ToolInputError: a field has no counterpart; the text names the native form.
    """
    special = _INWARD.get(name)
    if special is not None:
        return special(name, args, cwd)
    shape = SHAPES.get(name)
    return (shape.tool, _fields_in(name, shape, args, cwd)) if shape is not None else (native_name(name), args)


def _fields_out(shape: Shape, args: JsonObject, cwd: str) -> JsonObject:
    names = {native: foreign for foreign, native in reversed(list(shape.fields.items()))}
    found = {names.get(field, field): value for field, value in args.items()}
    place = names.get(shape.path, "")
    if place in found:
        found[place] = absolute(found[place], cwd)
    return found


def _fields_in(name: str, shape: Shape, args: JsonObject, cwd: str) -> JsonObject:
    found: JsonObject = {}
    for field, value in args.items():
        if field in shape.dropped:
            continue
        is_native = field in shape.kept or field in shape.fields.values()
        native = shape.fields.get(field) or (field if is_native else "")
        if not native:
            said = quotable(field)
            raise ToolInputError(_NO_FIELD.format(field=said, name=name, tool=shape.tool, native=shape.native))
        found[native] = relative(value, cwd) if native == shape.path else value
    return found


# Tools with fields that are not one to one.


def _bash_out(args: JsonObject, cwd: str) -> NamedCall:
    found = _fields_out(SHAPES["Bash"], args, cwd)
    seconds = found.get("timeout")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        found["timeout"] = _whole(seconds * MILLISECONDS)
    return "Bash", found


def _bash_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    asks_out = args.get("dangerouslyDisableSandbox") is True
    found = _fields_in(
        name, SHAPES["Bash"], {key: value for key, value in args.items() if key != "dangerouslyDisableSandbox"}, cwd
    )
    time = found.get("timeout")
    if isinstance(time, int | float) and not isinstance(time, bool):
        found["timeout"] = _whole(max(time / MILLISECONDS, 1)) if abs(time) < 1e15 else time  # noqa: PLR2004 - exact as a float
    if asks_out:
        found.setdefault("access", "outside")
    return "bash", found


def _whole(number: float) -> int | float:
    return int(number) if abs(number) < 1e15 and number == int(number) else number  # noqa: PLR2004 - as above


def _read_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    found = _fields_in(name, SHAPES["Read"], args, cwd)
    if found.get("offset") == 0 and found["offset"] is not False:
        del found["offset"]
    path = found.get("path")
    is_image = isinstance(path, str) and posixpath.splitext(path)[1].lower() in IMAGE_SUFFIXES
    return ("read_image", {"path": path}) if is_image else ("read_file", found)


def _list_out(args: JsonObject, cwd: str) -> NamedCall:
    return "Glob", {"pattern": ALL_FILES, **_fields_out(SHAPES["Glob"], args, cwd)}


def _list_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    found = _fields_in(name, SHAPES[name], args, cwd)
    if found.get("glob") in (ALL_FILES, "**"):
        del found["glob"]
    return "list_files", found


def _search_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    if args.get("output_mode", "content") != "content":
        raise ToolInputError(
            "output_mode of Grep has no counterpart here; search gives the matching lines, as with content. "
            "For names of files use list_files with glob."
        )
    if args.get("multiline"):
        raise ToolInputError("multiline of Grep has no counterpart here; search matches pattern in each line.")
    if args.get("type") is not None:
        raise ToolInputError("type of Grep has no counterpart here; search takes glob, such as *.py.")
    around = [args[key] for key in ("-A", "-B", "-C", "context") if isinstance(args.get(key), int)]
    rest = {key: value for key, value in args.items() if key not in _SEARCH_OWN}
    found = _fields_in(name, SHAPES["Grep"], rest, cwd)
    if len(around) > 1 or (around and "-C" not in args):
        found["context"] = max(one for one in around if isinstance(one, int))
    return "search", found


_SEARCH_OWN: Final = frozenset({"output_mode", "multiline", "type", "-A", "-B", "context"})


def _patch_out(args: JsonObject, cwd: str) -> NamedCall:
    edits, path = args.get("edits"), absolute(args.get("path"), cwd)
    if not isinstance(edits, list) or not edits or not all(isinstance(one, dict) for one in edits):
        return "MultiEdit", {"file_path": path, "edits": edits}
    found = [one for one in edits if isinstance(one, dict)]
    if len(found) > 1:
        return "MultiEdit", {"file_path": path, "edits": [_edit_out(one) for one in found]}
    if found[0].get("op") == "overwrite":
        return "Write", {"file_path": path, "content": found[0].get("new")}
    return "Edit", {"file_path": path, **_edit_out(found[0])}


def _edit_out(edit: JsonObject) -> JsonObject:
    old = edit.get("old") if edit.get("op") == "replace" else ""
    return {"old_string": old, "new_string": edit.get("new")}


def _patch_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    known = {"file_path", "edits"} if name == "MultiEdit" else {"file_path", *_EDIT_FIELDS}
    edits = args.get("edits") if name == "MultiEdit" else [{key: args[key] for key in args if key in _EDIT_FIELDS}]
    _check_fields(name, args, known)
    if isinstance(edits, list):
        edits = [_edit_in(name, one) if isinstance(one, dict) else one for one in edits]
    return "patch", {"path": relative(args.get("file_path"), cwd), "edits": edits}


_EDIT_FIELDS: Final = ("old_string", "new_string", "replace_all")


def _edit_in(name: str, edit: JsonObject) -> JsonObject:
    """An edit; one without an old text adds, and `replace_all` counts only where the text occurs once."""
    _check_fields(name, edit, _EDIT_FIELDS)
    old, new = edit.get("old_string"), edit.get("new_string")
    return {"op": "append", "new": new} if old == "" else {"op": "replace", "old": old, "new": new}


def _check_fields(name: str, args: JsonObject, known: object) -> None:
    for field in args:
        if field not in known:  # type: ignore[operator]  # a set or a tuple of names
            said = quotable(field)
            native = "path and edits, each with op, old and new"
            raise ToolInputError(_NO_FIELD.format(field=said, name=name, tool="patch", native=native))


def _agents_out(args: JsonObject, cwd: str) -> NamedCall:
    tasks = args.get("tasks")
    only = tasks[0] if isinstance(tasks, list) and len(tasks) == 1 else None
    return ("Agent", _agent(only, "task", "")) if isinstance(only, dict) else ("spawn_agents", args)


def _task_out(args: JsonObject, cwd: str) -> NamedCall:
    if "initial_prompt" not in args:
        return "spawn_task", args
    return "Agent", {**_agent(args, "initial_prompt", "task_description"), "run_in_background": True}


def _agent(task: JsonObject, prompt: str, title: str) -> JsonObject:
    text, profile = task.get(prompt), task.get("profile")
    words = task.get(title) if title else None
    if words is None:
        words = one_line(text, LONGEST_DESCRIPTION) if isinstance(text, str) else ""
    found: JsonObject = {"description": words, "prompt": text}
    if "profile" in task:
        found["subagent_type"] = GENERAL[0] if profile == GENERAL[1] else profile
    return found


def _agent_in(name: str, args: JsonObject, cwd: str) -> NamedCall:
    if args.get("model") is not None:
        raise ToolInputError(f"model of {name} has no counterpart here; the profile of a sub-agent sets its model.")
    for field in args:
        if field not in _AGENT_FIELDS:
            said = quotable(field)
            native = "tasks, each with task, profile, max_turns and timeout"
            raise ToolInputError(_NO_FIELD.format(field=said, name=name, tool="spawn_agents", native=native))
    profile = args.get("subagent_type")
    more: JsonObject = {"profile": GENERAL[1] if profile == GENERAL[0] else profile} if "subagent_type" in args else {}
    if args.get("max_turns") is not None:
        more["max_turns"] = args["max_turns"]
    if args.get("run_in_background") is True:
        return "spawn_task", {"task_description": args.get("description"), "initial_prompt": args.get("prompt"), **more}
    return "spawn_agents", {"tasks": [{"task": args.get("prompt"), **more}]}


_AGENT_FIELDS: Final = frozenset({"description", "prompt", "subagent_type", "model", "run_in_background", "max_turns"})
_OUTWARD: Final[Mapping[str, Callable[[JsonObject, str], NamedCall]]] = {
    "bash": _bash_out,
    "patch": _patch_out,
    "list_files": _list_out,
    "spawn_agents": _agents_out,
    "spawn_task": _task_out,
}
_INWARD: Final[Mapping[str, Callable[[str, JsonObject, str], NamedCall]]] = {
    "Bash": _bash_in,
    "Read": _read_in,
    "Edit": _patch_in,
    "MultiEdit": _patch_in,
    "Glob": _list_in,
    "LS": _list_in,
    "Grep": _search_in,
    "Agent": _agent_in,
    "Task": _agent_in,
}
_NAMES: Final = {
    **{shape.tool: name for name, shape in reversed(list(SHAPES.items()))},
    "read_image": "Read",
    "submit_structured": "StructuredOutput",
}


KEPT: Final = "phoenix_call"
"""Field of a foreign input that holds the native call where the other fields cannot say all of it."""
DEEPEST: Final = 100
"""Levels of an input; a deeper one is refused."""
SECONDS: Final = 900
"""Largest timeout that under the native name of bash means seconds; a larger one is in milliseconds."""
TOO_DEEP: Final = "The input of {name} is nested too deeply."
NO_OBJECT: Final = "The input of {name} must be a JSON object."
NO_TOOL: Final = "{name} has no counterpart here; use the tools on offer, such as {instead}."
_INSTEAD: Final = {"NotebookEdit": "patch", "NotebookRead": "read_file"}


class TranslatedCall(Struct, frozen=True):
    """A call in the other language."""

    name: str
    input: JsonObject


def to_foreign(name: str, args: JsonObject, cwd: Path) -> TranslatedCall:
    """The call as hooks and hosts know it; a tool that they do not know keeps its name and input.

    Raises:
        ToolInputError: the input is no object, or nested too deeply.
    """
    _check(name, args)
    foreign, plain = outward(name, args, str(cwd))
    if foreign != name and not _says_all(foreign, plain, name, args, cwd):
        kept: JsonObject = {KEPT: {"tool": name, "input": args}}
        return TranslatedCall(foreign, plain | kept)
    return TranslatedCall(foreign, plain)


def from_foreign(name: str, args: JsonObject, cwd: Path) -> TranslatedCall:
    """The call as Phoenix has it, from a foreign name or from foreign fields under a native name.

    A name that neither knows, and a native call, come back unchanged.

    Raises:
        ToolInputError: it has no native form, is no object, or is nested too deeply.
    """
    _check(name, args)
    if name in WITHOUT:
        raise ToolInputError(NO_TOOL.format(name=name, instead=_INSTEAD.get(name, "todo_write")))
    if name not in NATIVE:
        return _from_native_name(name, args, cwd)
    given = {field: value for field, value in args.items() if field != KEPT}
    kept = _read_native_call(args.get(KEPT), cwd)
    if kept is not None:
        foreign, plain = outward(kept.name, kept.input, str(cwd))
        if foreign == name and _same(plain, given):
            return kept
    return TranslatedCall(*inward(name, given, str(cwd)))


def _from_native_name(name: str, args: JsonObject, cwd: Path) -> TranslatedCall:
    """A call whose name is native, and whose fields may be foreign all the same."""
    foreign = _foreign_fields(name, args)
    if not foreign:
        return TranslatedCall(name, args)
    tool, found = inward(foreign, args, str(cwd))
    timeout = args.get("timeout")
    if tool == "bash" and isinstance(timeout, int | float) and not timeout > SECONDS:
        found["timeout"] = timeout
    return TranslatedCall(name if tool != name and name in {"read_file", "read_image"} else tool, found)


def _foreign_fields(name: str, args: JsonObject) -> str:
    """The foreign name whose fields a call under a native name has; empty where they are native."""
    if name in {"patch", "write_file"}:
        edits = args.get("edits")
        if isinstance(edits, list) and any(isinstance(one, dict) and "old_string" in one for one in edits):
            return "MultiEdit"
        if name == "patch" and "old_string" in args:
            return "Edit"
    if name in {"spawn_agents", "spawn_task"}:
        return "Agent" if "prompt" in args else ""
    foreign = FOREIGN.get(name, "")
    shape = SHAPES.get(foreign)
    if shape is None:
        return ""
    native = {*shape.fields.values(), *shape.kept}
    only = {field for field in (*shape.fields, *shape.dropped) if field not in native}
    return foreign if any(field in only for field in args) else ""


def _read_native_call(value: JsonValue, cwd: Path) -> TranslatedCall | None:
    """The native call that travels in a foreign one; None for anything else."""
    if not isinstance(value, dict):
        return None
    name, args = value.get("tool"), value.get("input")
    return TranslatedCall(name, args) if isinstance(name, str) and isinstance(args, dict) else None


def _says_all(foreign: str, plain: JsonObject, name: str, args: JsonObject, cwd: Path) -> bool:
    """True if the plain foreign call translates back into the very same one."""
    try:
        tool, found = inward(foreign, plain, str(cwd))
    except ToolInputError:
        return False
    return tool == name and KEPT not in plain and _same(found, args)


def _same(one: JsonValue, other: JsonValue) -> bool:
    """True for equal JSON, in which 1, 1.0 and true differ; the depth was checked before."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[field]) for field, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other or (one != one and other != other)  # noqa: PLR0124 - NaN is equal to itself here


def _check(name: str, args: object) -> None:
    """Refuse what is no JSON object of a reasonable depth."""
    said = quotable(name)
    if not isinstance(args, dict) or not all(isinstance(field, str) for field in cast("dict[object, object]", args)):
        raise ToolInputError(NO_OBJECT.format(name=said))
    level: list[JsonValue] = [cast("JsonObject", args)]
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, dict | list)]
        if not level:
            return
    raise ToolInputError(TOO_DEEP.format(name=said))


def _inside(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
