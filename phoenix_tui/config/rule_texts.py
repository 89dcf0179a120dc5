"""Rules of a project: `.claude/rules/**/*.md` and CLAUDE.local.md, which count beside its AGENTS.md.

`paths` in the front matter of a rule names files by globs, relative to the folder that has `.claude`: such a rule is
for a model that reads one of them, any other for every conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from phoenix_tui.config.front_matter import FrontMatterError, Value, read_front_matter
from phoenix_tui.config.project import FILE_LIMIT
from phoenix_tui.config.sources.kinds import SourceFile
from phoenix_tui.config.sources.project_sources import read_source
from tools.clean import reveal_name
from tools.contract import ToolInputError
from tools.files.content import is_binary
from tools.files.globs import compiled

RULES: Final = Path(".claude") / "rules"
LOCAL: Final = "CLAUDE.local.md"
PATHS: Final = "paths"
MOST_GLOBS: Final = 100
"""Globs of one rule."""


class RuleText(Struct, frozen=True):
    """One such file, with the very bytes that were accepted."""

    path: Path
    place: Path
    """Folder whose files it is about."""
    content: bytes
    globs: tuple[str, ...] = ()
    """Files that it is for, relative to `place`; empty: for every conversation."""

    @property
    def is_local(self) -> bool:
        """True for the file that its owner keeps out of the repository."""
        return self.path.name == LOCAL

    def is_for(self, path: Path) -> bool:
        """True where a glob names this file, or the folder that it lies in."""
        if not path.is_relative_to(self.place):
            return False
        name = path.relative_to(self.place).as_posix()
        return any(compiled(glob).matches(name) or compiled(f"{glob}/**").matches(name) for glob in self.globs)


class BadRule(ValueError):
    """A rule that cannot be used; the message is a clause, with its line."""


def read_rules(files: Iterable[SourceFile], places: list[Path]) -> list[RuleText]:
    """The rules of these folders that can be used; `rule_faults` names the others."""
    found: list[RuleText] = []
    for file in files:
        with suppress(BadRule):
            if (rule := read_rule(file, places)) is not None:
                found.append(rule)
    return sorted(found, key=lambda rule: (not rule.is_local, str(rule.path)))


def rule_faults(files: Iterable[SourceFile], places: list[Path]) -> list[str]:
    """Sentences about rules that cannot be used, each with its file and line."""
    faults: list[str] = []
    for file in files:
        try:
            read_rule(file, places)
        except BadRule as error:
            faults.append(f"{reveal_name(file.path)} is not used: {error}.")
    return faults


def read_rule(file: SourceFile, places: list[Path]) -> RuleText | None:
    """A rule of one of these folders; None where it is of none, or another one by now.

    Raises:
        BadRule: its front matter cannot be read, or it is no text.
    """
    place = next((one for one in reversed(places) if file.path in (one / LOCAL,) or _is_below(file.path, one)), None)
    content = read_source(file, FILE_LIMIT) if place is not None else None
    if place is None or content is None:
        return None
    if is_binary(content):
        raise BadRule("it is no text")
    if file.path.name == LOCAL:
        return RuleText(file.path, place, content)
    try:
        front = read_front_matter(content.decode("utf-8", "replace"))
    except FrontMatterError as error:
        raise BadRule(f"line {error.line}: {error.sentence.rstrip('.')}") from error
    if (fault := front.left_out.get(PATHS)) is not None:  # without its paths it would count everywhere
        raise BadRule(f"line {fault.line}: {fault.sentence.rstrip('.')}")
    globs = _globs(front.values.get(PATHS, ""), front.lines.get(PATHS, 1))
    return RuleText(file.path, place, front.body.encode("utf-8", "replace"), globs)


def _is_below(path: Path, place: Path) -> bool:
    return path.is_relative_to(place / RULES)


def _globs(value: Value, line: int) -> tuple[str, ...]:
    """Globs of a list, or of a text with commas outside braces between them."""
    if not isinstance(value, str | tuple):
        raise BadRule(f"line {line}: 'paths' must be a list of globs")
    words = _parted(value) if isinstance(value, str) else value
    globs = tuple(word.strip().removeprefix("./").strip("/") for word in words if word.strip().strip("/"))
    if len(globs) > MOST_GLOBS:
        raise BadRule(f"line {line}: 'paths' has more than {MOST_GLOBS} globs")
    for glob in globs:
        try:
            compiled(f"{glob}/**")
        except ToolInputError as error:
            raise BadRule(f"line {line}: {str(error).rstrip('.')}") from error
    return globs


def _parted(text: str) -> list[str]:
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
