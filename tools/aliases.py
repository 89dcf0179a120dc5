"""Translation of tool calls between Phoenix and the hooks, hosts, lists and models that speak Claude Code's names.

Pure and total: the one error is a sentence for the model that names the native form. What the foreign fields cannot say
travels beside them in the field `phoenix_call`, so that a call that comes back unchanged is the very same call.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from tools.contract import JsonObject, JsonValue, ToolInputError
from tools.foreign_inputs import SHAPES, inward, outward, quotable
from tools.foreign_names import FOREIGN, NATIVE, WITHOUT

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
    kept = _kept(args.get(KEPT), cwd)
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


def _kept(value: JsonValue, cwd: Path) -> TranslatedCall | None:
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
