"""A profile as text: front matter that sets, and a body that instructs.

---
description: reads, never writes
tools: read_file, search          (or [read_file, search], or one below the other with dashes)
---
Look for mistakes first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports.profiles import KNOWN_TOOLS, Profile, ProfileError
from engine.records import PermissionMode
from phoenix_tui.config.choices import EFFORTS, PERMISSION_MODES, SANDBOXES
from phoenix_tui.config.front_matter import FENCE, FrontMatter, FrontMatterError, Value, read_front_matter
from tools.clean import clean_line
from tools.foreign_names import native_names

MOST_TURNS: Final = 1_000
LONGEST_RUN: Final = 86_400.0
"""Seconds."""
LONGEST_DESCRIPTION: Final = 1_000
"""Characters; every model that may choose an agent reads all of them."""
LONGEST_QUOTE: Final = 60
"""Characters of a wrong value that are repeated."""
YES_NO: Final = {"true": True, "yes": True, "false": False, "no": False}
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_QUOTED: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_PLAIN: Final = re.compile(r"[^\s\"'#\[>|-](?:.*\S)?")
"""A text that needs no quotes, unless a comment seems to begin in it."""


class _Field(Struct):
    """One key with its value."""

    key: str
    line: int
    value: Value


class _Reading(Struct, frozen=True):
    """One file while it is read."""

    path: Path

    def wrong(self, line: int, sentence: str) -> ProfileError:
        """The error that says so."""
        return ProfileError(f"{clean_line(str(self.path))}:{line}: {sentence}", self.path, line)


def parse_profile(text: str, path: Path, *, project: bool = False) -> Profile:
    """Parse the profile in the file `path`, named like the file.

    Raises:
        ProfileError: the front matter is wrong; file, line and what is allowed are named.
    """
    reading = _Reading(path)
    try:
        found = read_front_matter(text)
        for fault in found.left_out.values():  # the user's own file: nothing in it is passed by
            raise fault
    except FrontMatterError as error:
        raise reading.wrong(error.line, error.sentence) from error
    values = {field.key: CHECKS[field.key](field, reading) for field in _fields(found, reading)}
    if values.pop("name", path.stem) != path.stem:
        raise reading.wrong(
            found.lines["name"], f"'name' must be {_quote(path.stem)}, the name of the file, or be left out."
        )
    return Profile(name=path.stem, prompt=found.body.strip(), source=str(path), project=project, **values)  # type: ignore[arg-type]  # each by its own check


def key_lines(text: str) -> Mapping[str, int]:
    """Line of each key of the front matter."""
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    found: dict[str, int] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.strip() == FENCE:
            break
        key = line.partition(":")[0].strip()
        if key in CHECKS:
            found[key] = number
    return found


def profile_text(profile: Profile, *, comment: str = "") -> str:
    """The file with the same settings; those left to the parent are left out."""
    lines = [FENCE, *(f"# {line}" for line in comment.splitlines())]
    mode = profile.permission_mode
    settings = {
        "description": _written(profile.description),
        "model": _written(profile.model),
        "tools": ", ".join(profile.tools),
        "permission_mode": mode.value if mode is not None else "",
        "sandbox": profile.sandbox,
        "effort": profile.effort,
        "max_turns": str(profile.max_turns or ""),
        "timeout": f"{profile.timeout:g}" if profile.timeout else "",
        "locked": "true" if profile.locked else "",
    }
    lines += [f"{key}: {value}" for key, value in settings.items() if value]
    return "\n".join([*lines, FENCE, "", profile.prompt, ""])


def _fields(found: FrontMatter, reading: _Reading) -> Iterator[_Field]:
    for key, value in found.values.items():
        line = found.lines[key]
        if key not in CHECKS:
            said = f"{key}: {value}" if isinstance(value, str) and value else key
            raise reading.wrong(line, f"{_quote(said)} is not a valid key. Valid keys are {', '.join(CHECKS)}.")
        yield _Field(key, line, value)


def _value(text: str) -> str:
    """Strip quotes, or a comment behind the value."""
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return _COMMENT.sub("", text, count=1).rstrip()
    body = quoted[1]
    if body.startswith("'"):
        return body[1:-1].replace("''", "'")
    try:
        return str(json.loads(body, strict=False))
    except ValueError:
        return body[1:-1]


def _text(field: _Field, reading: _Reading) -> str:
    if not isinstance(field.value, str):
        raise reading.wrong(field.line, f"'{field.key}' must be one text.")
    return " ".join(field.value.encode("utf-8", "replace").decode().split())


def _description(field: _Field, reading: _Reading) -> str:
    words = _text(field, reading)
    if len(words) > LONGEST_DESCRIPTION:
        raise reading.wrong(field.line, f"'description' is longer than {LONGEST_DESCRIPTION} characters.")
    return words


def _tools(field: _Field, reading: _Reading) -> tuple[str, ...]:
    if isinstance(field.value, str):
        names = [name.strip() for name in field.value.split(",") if name.strip()]
    else:
        names = list(field.value)
    names = [native for name in names for native in native_names(name)]
    if not names:
        raise reading.wrong(
            field.line, f"'tools' must list tools among {', '.join(KNOWN_TOOLS)}, or be left out for all."
        )
    for name in names:
        if name not in KNOWN_TOOLS:
            raise reading.wrong(field.line, f"there is no tool {_quote(name)}. The tools are {', '.join(KNOWN_TOOLS)}.")
    return tuple(dict.fromkeys(names))


def _mode(field: _Field, reading: _Reading) -> PermissionMode | None:
    value = _one_of(PERMISSION_MODES)(field, reading)
    return PermissionMode(value) if value else None


def _one_of(allowed: tuple[str, ...]) -> Callable[[_Field, _Reading], str]:
    def check(field: _Field, reading: _Reading) -> str:
        value = _text(field, reading)
        if value and value not in allowed:
            words = f"'{field.key}' must be one of {', '.join(allowed)}, not {_quote(value)}."
            raise reading.wrong(field.line, words)
        return value

    return check


def _turns(field: _Field, reading: _Reading) -> int:
    words = _text(field, reading) or "0"
    if not re.fullmatch(r"[0-9]{1,6}", words) or int(words) > MOST_TURNS:
        allowed = f"a whole number up to {MOST_TURNS}, 0 for the default limit"
        raise reading.wrong(field.line, f"'max_turns' must be {allowed}, not {_quote(words)}.")
    return int(words)


def _seconds(field: _Field, reading: _Reading) -> float:
    words = _text(field, reading) or "0"
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", words) or float(words) > LONGEST_RUN:
        allowed = f"seconds up to {LONGEST_RUN:.0f}, 0 for the default limit"
        raise reading.wrong(field.line, f"'timeout' must be {allowed}, not {_quote(words)}.")
    return float(words)


def _yes_or_no(field: _Field, reading: _Reading) -> bool:
    words = _text(field, reading).lower()
    if words not in YES_NO:
        raise reading.wrong(field.line, f"'{field.key}' must be true or false, not {_quote(words)}.")
    return YES_NO[words]


def _quote(value: str) -> str:
    """A wrong value on one line, without anything that a terminal would obey."""
    short = value if len(value) <= LONGEST_QUOTE else f"{value[:LONGEST_QUOTE]}…"
    return f"'{clean_line(short)}'"


def _written(text: str) -> str:
    """A text as a value; quoted where it would be read as something else."""
    plain = _PLAIN.fullmatch(text) is not None and _value(text) == text
    return text if plain or not text else json.dumps(text, ensure_ascii=False)


CHECKS: Final[Mapping[str, Callable[[_Field, _Reading], object]]] = {
    "name": _text,
    "description": _description,
    "model": _text,
    "tools": _tools,
    "permission_mode": _mode,
    "sandbox": _one_of(SANDBOXES),
    "effort": _one_of(EFFORTS),
    "max_turns": _turns,
    "timeout": _seconds,
    "locked": _yes_or_no,
}
"""Every key of the front matter, and the function that makes its value."""
