"""Agents as Claude's own program and its hosts describe them, as profiles: an object, or a file with front matter.

Such a profile narrows the permissions of the user, and never widens them, where it comes from a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ports.profiles import KNOWN_TOOLS, Profile
from engine.records import PermissionMode
from engine.run_options import Effort
from phoenix_tui.config.claude_words import FOREIGN_EFFORTS, FOREIGN_MODES, known_model
from phoenix_tui.config.front_matter import FrontMatter, FrontMatterError, Value, read_front_matter
from tools.clean import clean, clean_line
from tools.contract import JsonObject, JsonValue
from tools.files.content import is_binary
from tools.foreign_names import native_names

SUFFIX: Final = ".md"
MOST_BYTES: Final = 256 * 1024
"""Bytes of one file."""
LONGEST_NAME: Final = 100
"""Characters of a name that a host gives."""
LONGEST_FILE_NAME: Final = 64
INHERIT: Final = "inherit"
"""Model of an agent that has its parent's."""
BY_HOST: Final = "the host"
NO_TOOL: Final = "none"
"""Entry of a list of tools that would be empty, since an empty one allows all."""
ALL_TOOLS: Final = "*"
MOST_NAMED: Final = 5
"""Unknown tools that a note names."""
_NAME: Final = re.compile(r"\w[\w.-]*")
SKILLS: Final = "skills"
MOST_SKILLS: Final = 50
"""Skills that an agent brings along."""
_TOOL_LISTS: Final = frozenset({"tools", "disallowedTools"})
_LISTS: Final = _TOOL_LISTS | {SKILLS}
_NUMBERS: Final = frozenset({"maxTurns"})
_KNOWN: Final = _LISTS | _NUMBERS | {"name", "description", "effort", "permissionMode", "model"}


class AgentError(ValueError):
    """An agent cannot be used: a clause without full stop, and the line in its file, 0 for the whole."""

    def __init__(self, clause: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {clause}" if line else clause)
        self.clause = clause
        self.line = line


class AgentFile(Struct, frozen=True):
    """The profile of one file, and clauses about what in the file has no effect."""

    profile: Profile
    notes: tuple[str, ...] = ()


def agent_profile(name: str, about: JsonValue) -> Profile:
    """The profile of an agent as hosts describe it. Raises AgentError."""
    if not isinstance(about, dict) or not name.strip() or len(name) > LONGEST_NAME:
        raise AgentError(f"The agent {name[:60]!r} must have a name and be an object")
    effort, mode = about.get("effort"), about.get("permissionMode")
    turns, model = about.get("maxTurns"), about.get("model")
    wanted = FOREIGN_EFFORTS.get(effort, effort) if isinstance(effort, str) else ""
    return Profile(
        name=name,
        description=_text(about.get("description")),
        prompt=_text(about.get("prompt")),
        model=known_model(model) if isinstance(model, str) and model not in {"", INHERIT} else "",
        tools=_tools(about.get("tools"), about.get("disallowedTools")),
        permission_mode=PermissionMode(FOREIGN_MODES[mode])
        if isinstance(mode, str) and mode in FOREIGN_MODES
        else None,
        max_turns=turns if isinstance(turns, int) and turns > 0 else 0,
        effort=wanted if wanted in set(Effort) else "",
        skills=_skills(about.get(SKILLS)),
        source=BY_HOST,
    )


def agent_in(content: bytes, path: Path, prefix: str = "") -> AgentFile:
    """The agent of a file's content; `prefix` stands before its name. Raises AgentError."""
    if len(content) > MOST_BYTES:
        raise AgentError(f"it is larger than {MOST_BYTES // 1024} KB")
    if is_binary(content):
        raise AgentError("it is no text")
    try:
        found = read_front_matter(content.decode())
    except UnicodeDecodeError as error:
        raise AgentError("it is not UTF-8 text") from error
    except FrontMatterError as error:
        raise AgentError(error.sentence.rstrip("."), error.line) from error
    for key in sorted(_TOOL_LISTS & found.left_out.keys()):
        fault = found.left_out[key]  # without its limits an agent would have every tool
        raise AgentError(fault.sentence.rstrip("."), fault.line)
    name = found.values.get("name") or path.name.removesuffix(SUFFIX)
    if not isinstance(name, str) or len(name) > LONGEST_FILE_NAME or _NAME.fullmatch(name) is None:
        raise AgentError(
            f"its name must be one word of at most {LONGEST_FILE_NAME} letters, digits, '-', '_' and '.'",
            found.lines.get("name", 0),
        )
    about = _about(found.values, found.body)
    profile = agent_profile(f"{prefix}{name}", about)
    return AgentFile(replace(profile, source=str(path), project=True), (*_notes(about), *_faults(found)))


def _about(values: Mapping[str, Value], body: str) -> JsonObject:
    """The fields as a host writes them, harmless to show."""
    about: JsonObject = {}
    for key, value in values.items():
        if key in _LISTS:
            about[key] = _listed(value)
        elif key in _NUMBERS:
            about[key] = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0
        elif isinstance(value, str):
            about[key] = clean_line(value)
    about["prompt"] = clean(body).strip()
    return about


def _faults(found: FrontMatter) -> Iterator[str]:
    """Clauses about known fields whose values cannot be read."""
    for key, fault in found.left_out.items():
        if not key or key in _KNOWN:
            yield f"{key or 'some lines'} left out: {fault.sentence.rstrip('.')}"


def _notes(about: JsonObject) -> Iterator[str]:
    """Clauses about fields that mean nothing here."""
    unknown = [name for key in sorted(_TOOL_LISTS) for name in _natives(about.get(key)) if not _is_known(name)]
    if unknown:
        names = ", ".join(dict.fromkeys(clean_line(name)[:40] for name in unknown[:MOST_NAMED]))
        yield f"there are no such tools here: {names}{' and more' if len(unknown) > MOST_NAMED else ''}"
    mode = about.get("permissionMode")
    if mode and mode not in FOREIGN_MODES:
        yield f"there is no permission mode {_text(mode)[:40]}"


def _is_known(name: str) -> bool:
    return name in KNOWN_TOOLS or name == ALL_TOOLS or name.startswith("mcp__")


def _listed(value: Value) -> list[JsonValue]:
    names = value.split(",") if isinstance(value, str) else value
    return [name.strip() for name in names if name.strip()]


def _tools(allowed: JsonValue, denied: JsonValue) -> tuple[str, ...]:
    """Native tools of an agent; none in the list: all of them."""
    left_out, wanted = set(_natives(denied)), _natives(allowed)
    if not wanted or ALL_TOOLS in wanted:
        wanted = KNOWN_TOOLS if left_out else ()
    kept = tuple(dict.fromkeys(name for name in wanted if name not in left_out))
    return kept or ((NO_TOOL,) if wanted else ())


def _skills(names: JsonValue) -> tuple[str, ...]:
    given = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return tuple(dict.fromkeys(clean_line(one).strip() for one in given))[:MOST_SKILLS]


def _natives(names: JsonValue) -> tuple[str, ...]:
    given = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return tuple(native for one in given for native in native_names(one.partition("(")[0]))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
