"""Files of a project that its hooks and servers are started from: a change of one is a change of what runs.

A command leads to the files that it names, to those that its program reads by itself (`make` to a Makefile, `npm` to
package.json), and from scripts among them further on (SECURITY S8).
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from phoenix_tui.config.sources.fingerprint import Fingerprint
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from tools.files.content import is_binary
from tools.files.own_files import read_regular

MOST_BYTES: Final = 1024 * 1024
"""Bytes of one file of hooks or servers."""
MOST_TEXT: Final = 4 * 1024 * 1024
"""Bytes of a script that is looked into; a larger one ends the search."""
MOST_WORDS: Final = 50_000
"""Words of all commands and scripts that are looked at."""
MOST_FILES: Final = 300
MOST_ENTRIES: Final = 5_000
"""Names of one folder among which those are looked for that a program reads by itself."""
DEPTH: Final = 20
STEPS: Final = 6
"""Scripts that lead to each other, from the command on."""
TOO_FAR: Final = "its commands lead to more files than can be compared before each run, so none of them is started"
_ROOT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "PHOENIX_PROJECT_DIR")
_SIGNS: Final = frozenset(";&|()\n")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_TOOL: Final = re.compile(r"[a-z][a-z+-]{1,30}")
_LAUNCHER_NAMES: Final = """
    env command exec nice nohup time xargs sudo npx bunx pnpx uv uvx run poetry pdm hatch bundle dlx then do else if
    while ! { @ -
"""
_LAUNCHERS: Final = frozenset(_LAUNCHER_NAMES.split())
"""Words behind which another program may stand."""
_SHELL_WORDS: Final = frozenset(["echo", "test", "printf", "export", "true", "false", "exit", "cat", "set", "git"])
"""Programs that run no file beside them by its name; git's own files are looked after elsewhere."""
_OWN_FILES: Final = {
    "npm": ("package.json",),
    "npx": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
    "mvn": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "gradlew": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "pytest": ("conftest.py",),
    "rails": ("Gemfile",),
    "rake": ("Gemfile",),
    "bundle": ("Gemfile",),
    "ant": ("build.xml",),
    "invoke": ("tasks.py",),
    "cargo": ("build.rs",),
    "cmake": ("CMakeLists.txt",),
    "ninja": ("build.ninja",),
    "uv": ("pyproject.toml",),
    "poetry": ("pyproject.toml",),
    "pdm": ("pyproject.toml",),
    "hatch": ("pyproject.toml",),
}
"""Files that a program reads under names that do not begin with its own; others are found by their shape."""
_INTERPRETERS: Final = re.compile(r"(?:ba|da|z|k|fi)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua|source|\.|-f|exec")
_SCRIPTS: Final = frozenset([".sh", ".bash", ".zsh", ".fish", ".py", ".rb", ".pl", ".php", ".lua", ".mk"])
_JAVASCRIPT: Final = frozenset([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"])
_PYTHON_IMPORT: Final = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE)
_JAVASCRIPT_IMPORT: Final = re.compile(rb"(?:require\(|from|import\(?)\s*['\"](\.{1,2}/[^'\"\n]{1,300})['\"]")


class ProgramSearch(Struct, eq=False):
    """One search below a root; `seen` gets every path that is looked for."""

    folder: Path
    root: Path
    seen: Fingerprint = field(default_factory=Fingerprint)
    found: dict[Path, None] = field(default_factory=dict[Path, None])
    """Files in the order in which they were found."""
    is_cut: bool = False
    """True where not all were found: nothing may be started from these files."""
    _words_left: int = MOST_WORDS
    _names: dict[Path, Sequence[str]] = field(default_factory=dict[Path, Sequence[str]])
    _tools: set[tuple[str, Path]] = field(default_factory=set[tuple[str, Path]])
    """Programs whose own files were looked for, by place."""

    def take(self, files: Iterable[SourceFile]) -> None:
        """Find the files that the commands of hooks and servers lead to."""
        for file in files:
            if file.kind in {SourceKind.HOOKS, SourceKind.SERVERS}:
                places = (self.folder, file.path.parent, self.root)
                for words in _commands(file.path):
                    self._command(words, places, STEPS, imports=file.kind is SourceKind.HOOKS)

    def _command(
        self, words: Sequence[str], places: Sequence[Path], steps: int, *, imports: bool, only_code: bool = False
    ) -> None:
        """Follow one command line; with `only_code` it is a line of a script, whose data is not looked at."""
        places = tuple(dict.fromkeys(places))
        starts, before = True, ""
        for word in words:
            self._words_left -= 1
            if self._words_left < 0:
                self.is_cut = True
                return
            if word and set(word) <= _SIGNS:
                starts = True
                continue
            if starts and not _ASSIGNMENT.match(word):
                self._own_files(word, places, steps, imports=imports)
                starts = word in _LAUNCHERS
            elif before == "-m":
                self._module(word, places, steps, imports=imports)
            if before in {"-C", "cd", "--directory", "--prefix"}:
                places = (*places, *(folder for folder in self._folders(word, places)))
                self._own_files(words[0], places, steps, imports=imports)
            if steps and any(sign in word for sign in " \t\n;"):  # a script in an argument, as behind `sh -c`
                self._command(_split(word), places, steps - 1, imports=imports, only_code=True)
            runs = _INTERPRETERS.fullmatch(before) is not None
            if not only_code or runs or "/" in word or os.path.splitext(word)[1] in _SCRIPTS | _JAVASCRIPT:  # noqa: PTH122 - a word
                self._named(word, places, steps, imports=imports, only_code=only_code and not runs)
            before = word.rpartition("/")[2]

    def _named(self, word: str, places: Sequence[Path], steps: int, *, imports: bool, only_code: bool) -> None:
        word = self._filled(word)
        word = word.rpartition("=")[2] if word.startswith("-") else word
        if not word or "\0" in word or len(word) > os.pathconf("/", "PC_PATH_MAX"):
            return
        for place in places:
            path = Path(os.path.normpath(place / word))
            if (real := self._inside(path)) is not None and (not only_code or _is_code(real)):
                self._add(path, real, places, steps, imports=imports)

    def _filled(self, word: str) -> str:
        for name in _ROOT_VARIABLES:
            word = word.replace(f"${{{name}}}", str(self.folder)).replace(f"${name}", str(self.folder))
        return word

    def _folders(self, word: str, places: Sequence[Path]) -> list[Path]:
        named = (Path(os.path.normpath(place / self._filled(word))) for place in places)
        return [path for path in named if path.is_dir() and path.resolve().is_relative_to(self.root)]

    def _own_files(self, word: str, places: Sequence[Path], steps: int, *, imports: bool) -> None:
        """Files that a program reads by itself: named after it, as Makefile and jest.config.js, or in the table."""
        tool = word.rpartition("/")[2].lower()
        if not _TOOL.fullmatch(tool) or tool in _SHELL_WORDS:
            return
        shape = re.compile(rf"\.?(?:gnu|bsd)?{re.escape(tool)}(?:file|rc|w)?(?:[._-].*)?", re.IGNORECASE)
        for place in places:
            if (tool, place) in self._tools:
                continue
            self._tools.add((tool, place))
            names = [*_OWN_FILES.get(tool, ()), *filter(shape.fullmatch, self._listed(place))]
            for path in (place / name for name in names if not name.endswith((".lock", "ignore"))):
                if (real := self._inside(path)) is not None:
                    self._add(path, real, places, steps, imports=imports)

    def _listed(self, place: Path) -> Sequence[str]:
        if place not in self._names:
            self.seen.note(place)
            try:
                names = sorted(os.listdir(place))  # noqa: PTH208 - names alone
            except OSError:
                names = []
            self.is_cut = self.is_cut or len(names) > MOST_ENTRIES
            self._names[place] = names[:MOST_ENTRIES]
        return self._names[place]

    def _module(self, name: str, places: Sequence[Path], steps: int, *, imports: bool) -> None:
        """A module of Python in one of the places, as a file or as a package."""
        stem = name.strip().replace(".", "/")
        if not stem or stem.startswith("/"):
            return
        for place in places:
            for end in (".py", "/__init__.py", "/__main__.py"):
                if (real := self._inside(path := Path(f"{place}/{stem}{end}"))) is not None:
                    self._add(path, real, places, steps, imports=imports)

    def _inside(self, path: Path) -> Path | None:
        """The regular file at a path, below the root with all links resolved; None for anything else."""
        self.seen.note(path)
        try:
            real = path.resolve(strict=True)
            return real if real.is_file() and real.is_relative_to(self.root) else None
        except (OSError, RuntimeError, ValueError):  # a name that no file can have
            return None

    def _add(self, path: Path, real: Path, places: Sequence[Path], steps: int, *, imports: bool) -> None:
        if path in self.found:
            return
        if len(self.found) >= MOST_FILES:
            self.is_cut = True
            return
        self.found[path] = None
        if not _is_code(real) and path.name not in _FOLLOWED and not _is_settings(path):
            return
        content = read_regular(real, MOST_TEXT + 1)
        if content is None or is_binary(content):
            return
        if not steps or len(content) > MOST_TEXT:
            self.is_cut = True
            return
        self._follow(path, content, (path.parent, *places), steps - 1, imports=imports)

    def _follow(self, path: Path, content: bytes, places: Sequence[Path], steps: int, *, imports: bool) -> None:
        """Follow a script: the lines of its commands, or the modules beside it that it imports."""
        if path.suffix == ".py" or content.startswith((b"#!/usr/bin/env python", b"#!/usr/bin/python")):
            for found in _PYTHON_IMPORT.finditer(content) if imports else ():
                names = (found[1] or found[2]).decode("utf-8", "replace").split(",")
                for name in names:
                    self._module(name.split()[0].lstrip(".") if name.split() else "", places[:1], steps, imports=True)
        elif path.suffix in _JAVASCRIPT:
            for found in _JAVASCRIPT_IMPORT.finditer(content) if imports else ():
                name = found[1].decode("utf-8", "replace")
                for end in ("", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.ts"):
                    self._named(f"{name}{end}", places[:1], steps, imports=True, only_code=False)
        elif path.name == "package.json":
            for line in _scripts(content):
                self._command(_split(line), places, steps, imports=imports, only_code=True)
        else:
            for line in content.decode("utf-8", "replace").splitlines():
                words = _split(line.lstrip(" \t@+-"))
                self._command(words, places, steps, imports=imports, only_code=True)


_FOLLOWED: Final = frozenset(["package.json", *(name for names in _OWN_FILES.values() for name in names)])


def _is_code(path: Path) -> bool:
    """True for a file that runs, or that an interpreter is given."""
    return path.suffix in _SCRIPTS or path.suffix in _JAVASCRIPT or os.access(path, os.X_OK)


def _is_settings(path: Path) -> bool:
    """True for the usual files of a program that runs commands: Makefile, Taskfile.yml, lefthook.toml."""
    return path.suffix in {"", ".yml", ".yaml", ".toml"}


def _commands(path: Path) -> Iterator[list[str]]:
    """Words of every command in a JSON file, whatever its shape; none where it is no JSON."""
    content = read_regular(path, MOST_BYTES + 1)
    if content is None or len(content) > MOST_BYTES:
        return
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):
        return
    yield from _in(document, DEPTH)


def _in(value: object, depth: int) -> Iterator[list[str]]:
    if not depth:
        return
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _in(one, depth - 1)
    elif isinstance(value, dict):
        table = cast("dict[str, object]", value)
        given = table.get("args")
        words = [one for one in cast("list[object]", given) if isinstance(one, str)] if isinstance(given, list) else []
        command, helper = table.get("command"), table.get("headersHelper")
        yield [*(_split(command) if isinstance(command, str) else []), *words]
        yield _split(helper) if isinstance(helper, str) else []
        for key, one in table.items():
            if key not in {"command", "headersHelper"}:
                yield from _in(one, depth - 1)


def _scripts(content: bytes) -> Iterator[str]:
    """Command lines of the scripts in a package.json."""
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):
        return
    scripts = cast("dict[str, object]", document).get("scripts") if isinstance(document, dict) else None
    if isinstance(scripts, dict):
        yield from (one for one in cast("dict[str, object]", scripts).values() if isinstance(one, str))


def _split(command: str) -> list[str]:
    """Words of a command line; all that stand between spaces where its quotes do not match."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return command.replace('"', " ").replace("'", " ").split()
