"""Bodies of skills and command files: variables, and shell lines whose output stands in the text.

Variables are replaced once, and no value is searched for further ones. In a shell line every argument is one quoted
word, so that no argument can begin a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

MOST_SHELL_LINES: Final = 50
"""Shell lines of one body that are run; further ones stay text."""
MOST_ARGUMENTS: Final = 100
_VARIABLE: Final = re.compile(
    r"\$ARGUMENTS\[(?P<index>\d{1,3})\]|\$(?P<all>ARGUMENTS)\b|\$(?P<position>\d{1,3})\b|\$\{(?P<name>[A-Z][A-Z_]{0,60})\}"
    r"|\$(?P<named>[a-z][a-z0-9_]{0,30})\b"
)
_INLINE: Final = re.compile(r"(?:(?<=\s)|^)!`([^`\n]{1,4000})`", re.MULTILINE)
_FENCE: Final = re.compile(r"[ ]{0,3}(`{3,}+|~{3,}+)([^`\n]*)$")
_SHELL_FENCE: Final = "!"
PREFIXES: Final = ("CLAUDE_", "PHOENIX_")
"""Beginnings of the names of variables: those of another program, and Phoenix's own."""


class ShellLine(Struct, frozen=True):
    """A command whose output takes its place."""

    command: str


Part: TypeAlias = str | ShellLine


class Values(Struct, frozen=True):
    """Values for one use of a body."""

    arguments: str = ""
    """The arguments as they were typed."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other values by name without its prefix, such as SKILL_DIR."""
    argument_names: Sequence[str] = ()
    """Names of the arguments by place; `$other` stays as it is."""

    @property
    def words(self) -> list[str]:
        """The arguments, split like a shell does; split at spaces where their quotes do not match."""
        lexer = shlex.shlex(self.arguments, posix=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:
            words = self.arguments.split()
        return words[:MOST_ARGUMENTS]


def parts_of(body: str) -> tuple[Part, ...]:
    """The texts and the shell lines of a body, in order; other fenced code is text, whatever it holds."""
    found: list[Part] = []
    for is_shell, text in _fenced(body):
        if is_shell:
            found.append(ShellLine(text))
        elif is_shell is None:
            found.append(text)
        else:
            found += _inline(text)
    return _bounded(_joined(found))


def rendered(body: str, values: Values) -> tuple[Part, ...]:
    """The parts of a body with every variable replaced; arguments that it names nowhere follow as a last line.

    A position without an argument, and an unknown name, stay as they are.
    """
    parts = parts_of(body)
    words = values.words
    named = False

    def filled(part: Part) -> Part:
        nonlocal named
        is_shell = isinstance(part, ShellLine)
        text = part.command if isinstance(part, ShellLine) else part
        written, uses = _filled(text, values, words, shlex.quote if is_shell else _as_it_is)
        named = named or uses
        return ShellLine(written) if is_shell else written

    done = [filled(part) for part in parts]
    if values.arguments.strip() and not named:
        done.append(f"\n\nARGUMENTS: {values.arguments.strip()}")
    return _joined(done)


def _filled(text: str, values: Values, words: Sequence[str], quoted: Callable[[str], str]) -> tuple[str, bool]:
    """The text with its variables replaced, and True where it named an argument."""
    named = False

    def value(found: re.Match[str]) -> str:
        nonlocal named
        if found["all"]:
            named = True
            return values.arguments if quoted is _as_it_is else " ".join(quoted(word) for word in words)
        place = found["index"] or found["position"]
        if found["named"]:
            if found["named"] not in values.argument_names:
                return found[0]
            place = str(values.argument_names.index(found["named"]))
        if place:
            named = True
            return quoted(words[int(place)]) if int(place) < len(words) else found[0]
        known = values.names.get(_without_prefix(found["name"]))
        return quoted(known) if known is not None else found[0]

    return _VARIABLE.sub(value, text), named


def _without_prefix(name: str) -> str:
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), "")


def _as_it_is(text: str) -> str:
    return text


def _fenced(body: str) -> Iterator[tuple[bool | None, str]]:
    """Pieces of a body: False for text, None for fenced code, True for the content of a shell fence."""
    fence, piece, is_shell = "", list[str](), False
    for line in body.splitlines(keepends=True):
        found = _FENCE.match(line.rstrip("\n\r"))
        if not fence and found:
            fence, is_shell = found[1], found[2].strip() == _SHELL_FENCE
            yield False, "".join(piece)
            piece = [] if is_shell else [line]
        elif fence and found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
            yield (True, "".join(piece).strip("\n")) if is_shell else (None, "".join([*piece, line]))
            piece, fence = (["\n"] if is_shell and line.endswith("\n") else []), ""
        else:
            piece.append(line)
    if fence and is_shell:  # a fence that nothing closes runs nothing
        yield None, f"{fence}{_SHELL_FENCE}\n{''.join(piece)}"
    else:
        yield (None if fence else False), "".join(piece)


def _inline(text: str) -> Iterator[Part]:
    start = 0
    for found in _INLINE.finditer(text):
        yield text[start : found.start()]
        yield ShellLine(found[1])
        start = found.end()
    yield text[start:]


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts with neighbouring texts as one, and none empty."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif not isinstance(part, str) or part:
            joined.append(part)
    return tuple(joined)


def _bounded(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with shell lines beyond the limit as text."""
    seen, bounded = 0, list[Part]()
    for part in parts:
        seen += isinstance(part, ShellLine)
        beyond = isinstance(part, ShellLine) and seen > MOST_SHELL_LINES
        bounded.append(f"!`{part.command}`" if beyond and isinstance(part, ShellLine) else part)
    return _joined(bounded)
