"""Rules in the names and patterns of Claude Code: `Bash(git log:*)` is `bash(git log *)`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tools.aliases import NATIVE, native_names

_FOREIGN: Final = re.compile(r"(?P<kind>\s*(?:deny|ask)\s+)?(?P<name>[A-Z]\w*)(?:\((?P<pattern>.*)\))?\s*\Z", re.DOTALL)
_FILES: Final = frozenset({"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"})


def native_rules(text: str) -> tuple[str, ...]:
    """The rules that a text means, each as `tool(pattern)`; a text without a foreign name means itself.

    `Read(x)` means every tool that reads a file, in a rule that denies also the ones that search it.
    """
    found = _FOREIGN.match(text)
    if found is None or found["name"] not in NATIVE:
        return (text,)
    kind = f"{found['kind'].strip()} " if found["kind"] else ""
    if found["pattern"] is None and not kind:
        return (text,)
    pattern = _pattern(found["name"], "*" if found["pattern"] is None else found["pattern"])
    return tuple(f"{kind}{name}({pattern})" for name in native_names(found["name"], widely=bool(kind)))


def _pattern(name: str, pattern: str) -> str:
    if name == "Bash":
        return f"{pattern[:-2]} *" if pattern.endswith(":*") and pattern != ":*" else pattern
    if name not in _FILES or pattern == "*":
        return pattern
    if pattern.startswith("//"):
        pattern = pattern[1:]
    elif pattern.startswith("/"):
        pattern = pattern[1:]  # from the folder of the settings there, of the project here
    elif pattern.startswith("~/"):
        pattern = f"{Path.home()}{pattern[1:]}"
    return re.sub(r"\*\*+/?", "*", pattern.removeprefix("./"))
