"""Finds the files that extend Phoenix, in a project and in the folders of the user, and the programs they start.

A command leads to the files that it names, to those that its program reads by itself (`make` to a Makefile, `npm` to
package.json), and from scripts among them further on (SECURITY S8): a change of one is a change of what runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from phoenix_tui.config.sources.extension_files import (
    Digests,
    Fingerprint,
    LeftOutFile,
    Plugin,
    SourceFile,
    SourceKind,
    Sources,
)
from phoenix_tui.config.trust import places_of
from tools.files.content import is_binary
from tools.files.links import follow_links
from tools.files.own_files import read_regular

MOST_DECLARING_BYTES: Final = 1024 * 1024
"""Bytes of one file of hooks or servers."""
MOST_TEXT: Final = 4 * 1024 * 1024
"""Bytes of a script that is looked into; a larger one ends the search."""
MOST_WORDS: Final = 50_000
"""Words of all commands and scripts that are looked at."""
MOST_PROGRAMS: Final = 300
MOST_PROGRAM_ENTRIES: Final = 5_000
"""Names of one folder among which those are looked for that a program reads by itself."""
PROGRAM_DEPTH: Final = 20
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
            if not only_code or runs or "/" in word or os.path.splitext(word)[1] in _SCRIPTS | _JAVASCRIPT:
                self._follow_word(word, places, steps, imports=imports, only_code=only_code and not runs)
            before = word.rpartition("/")[2]

    def _follow_word(self, word: str, places: Sequence[Path], steps: int, *, imports: bool, only_code: bool) -> None:
        word = self._fill_roots(word)
        word = word.rpartition("=")[2] if word.startswith("-") else word
        if not word or "\0" in word or len(word) > os.pathconf("/", "PC_PATH_MAX"):
            return
        for place in places:
            path = Path(os.path.normpath(place / word))
            if (real := self._inside(path)) is not None and (not only_code or _is_code(real)):
                self._add(path, real, places, steps, imports=imports)

    def _fill_roots(self, word: str) -> str:
        for name in _ROOT_VARIABLES:
            word = word.replace(f"${{{name}}}", str(self.folder)).replace(f"${name}", str(self.folder))
        return word

    def _folders(self, word: str, places: Sequence[Path]) -> list[Path]:
        named = (Path(os.path.normpath(place / self._fill_roots(word))) for place in places)
        return [path for path in named if os.path.isdir(path) and follow_links(path).is_relative_to(self.root)]

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
            names = [*_OWN_FILES.get(tool, ()), *filter(shape.fullmatch, self._list_names(place))]
            for path in (place / name for name in names if not name.endswith((".lock", "ignore"))):
                if (real := self._inside(path)) is not None:
                    self._add(path, real, places, steps, imports=imports)

    def _list_names(self, place: Path) -> Sequence[str]:
        if place not in self._names:
            self.seen.note(place)
            try:
                names = sorted(os.listdir(place))
            except OSError:
                names = []
            self.is_cut = self.is_cut or len(names) > MOST_PROGRAM_ENTRIES
            self._names[place] = names[:MOST_PROGRAM_ENTRIES]
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
            return real if os.path.isfile(real) and real.is_relative_to(self.root) else None
        except (OSError, RuntimeError, ValueError):  # a name that no file can have
            return None

    def _add(self, path: Path, real: Path, places: Sequence[Path], steps: int, *, imports: bool) -> None:
        if path in self.found:
            return
        if len(self.found) >= MOST_PROGRAMS:
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
                    self._follow_word(f"{name}{end}", places[:1], steps, imports=True, only_code=False)
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
    content = read_regular(path, MOST_DECLARING_BYTES + 1)
    if content is None or len(content) > MOST_DECLARING_BYTES:
        return
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):
        return
    yield from _in(document, PROGRAM_DEPTH)


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


MOST_FILES: Final = 2_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Files and bytes of one project."""
MOST_FOLDERS: Final = 2_000
MOST_ENTRIES: Final = 20_000
"""Entries of all these folders that are looked at, whatever they are."""
DEPTH: Final = 8
"""Folders below a folder of skills or commands."""
SKILL_FILE: Final = "SKILL.md"
_PASSED: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_TOO_MUCH: Final = f"a folder has at most {MOST_FILES:,} such files and {MOST_BYTES // 1024**2} MB"
_TOO_WIDE: Final = f"only {MOST_FOLDERS:,} folders and {MOST_ENTRIES:,} entries of them are looked at"
_OUTSIDE: Final = "a link leads out of the project"


class _Rule(Struct, frozen=True):
    """Place of the files of a kind, relative to a folder of a project."""

    name: str
    kind: SourceKind
    suffix: str = ""
    """Empty: the name is one file, or every file below the folder counts."""


_PROJECT_RULES: Final = (
    _Rule("CLAUDE.local.md", SourceKind.INSTRUCTIONS),
    _Rule(".mcp.json", SourceKind.SERVERS),
    _Rule(".phoenix/hooks.json", SourceKind.HOOKS),
    _Rule(".phoenix/skills", SourceKind.SKILL),
    _Rule(".phoenix/commands", SourceKind.COMMAND, ".md"),
    _Rule(".agents/skills", SourceKind.SKILL),
    _Rule(".claude/settings.json", SourceKind.HOOKS),
    _Rule(".claude/settings.local.json", SourceKind.HOOKS),
    _Rule(".claude/skills", SourceKind.SKILL),
    _Rule(".claude/commands", SourceKind.COMMAND, ".md"),
    _Rule(".claude/agents", SourceKind.AGENT, ".md"),
    _Rule(".claude/rules", SourceKind.INSTRUCTIONS, ".md"),
)


def find_sources(folder: Path, digests: Digests, seen: Fingerprint | None = None) -> Sources:
    """Files of `folder` and, inside a repository, of the folders above it; the nearest first.

    `seen` gets every path that this depends on.
    """
    places = places_of(follow_links(folder))
    search = _Search(places[0], digests, seen)
    for place in reversed(places):
        for rule in _PROJECT_RULES:
            search.take(place / rule.name, rule)
    return Sources(tuple(search.files), tuple(search.left_out))


def find_users_sources(
    config: Path, home: Path, digests: Digests, seen: Fingerprint | None = None, *, claude_hooks: bool = False
) -> Sources:
    """Files of the user's own folders: Phoenix's first, then those of other programs; links are followed.

    `claude_hooks`: the hooks of another program's settings count too.
    """
    search = _Search(None, digests, seen)
    for path, kind, suffix in (
        (config / "hooks.json", SourceKind.HOOKS, ""),
        (config / "config.toml", SourceKind.HOOKS, ""),
        (config / "skills", SourceKind.SKILL, ""),
        (config / "commands", SourceKind.COMMAND, ".md"),
        (home / ".agents" / "skills", SourceKind.SKILL, ""),
        (home / ".claude" / "skills", SourceKind.SKILL, ""),
        (home / ".claude" / "commands", SourceKind.COMMAND, ".md"),
        (home / ".claude" / "agents", SourceKind.AGENT, ".md"),
    ):
        search.take(path, _Rule(path.name, kind, suffix))
    if claude_hooks:
        search.take(home / ".claude" / "settings.json", _Rule("settings.json", SourceKind.HOOKS))
    return Sources(tuple(search.files), tuple(search.left_out))


def find_plugins_sources(plugins: Sequence[Plugin], digests: Digests, seen: Fingerprint | None = None) -> Sources:
    """Files of plugins, in their order; links are followed."""
    search = _Search(None, digests, seen)
    for plugin in plugins:
        search.plugin = plugin
        for name, kind, suffix in (
            ("hooks/hooks.json", SourceKind.HOOKS, ""),
            (".mcp.json", SourceKind.SERVERS, ""),
            ("skills", SourceKind.SKILL, ""),
            ("commands", SourceKind.COMMAND, ".md"),
        ):
            if kind is not SourceKind.SERVERS or plugin.has_servers:
                search.take(plugin.folder / name, _Rule(name, kind, suffix))
    return Sources(tuple(search.files), tuple(search.left_out))


def with_programs(sources: Sources, programs: ProgramSearch, digests: Digests) -> Sources:
    """The sources together with files of the project that hooks and servers are started from; without hooks and servers
    where not all of those can be compared before each run.
    """
    search = _Search(programs.root, digests, programs.seen, sources)
    known = {file.path for file in sources.files}
    for path in programs.found:
        if path not in known and (real := search.inside(path)) is not None:
            known.add(path)
            search.add(path, real, SourceKind.PROGRAM, path)
    if programs.is_cut or search.is_full:
        runs = [file for file in search.files if file.kind in {SourceKind.HOOKS, SourceKind.SERVERS}]
        search.files = [file for file in search.files if file not in runs]
        search.left_out += [LeftOutFile(file.path, TOO_FAR) for file in runs]
    return Sources(tuple(search.files), tuple(search.left_out))


class _Entry(Struct, frozen=True):
    """Entry of a folder; `real` is its resolved path, None where it leads out of the project, or nowhere."""

    path: Path
    real: Path | None
    is_folder: bool


class _Search:
    """Takes files within the limits; below `root` alone, where there is one."""

    def __init__(
        self, root: Path | None, digests: Digests, seen: Fingerprint | None, known: Sources | None = None
    ) -> None:
        self._root = root
        self._digests = digests
        self._seen = seen or Fingerprint()
        self._room = MOST_BYTES
        self._folders = MOST_FOLDERS
        self._entries = MOST_ENTRIES
        self.plugin: Plugin | None = None
        self.files: list[SourceFile] = list(known.files) if known is not None else []
        self.left_out: list[LeftOutFile] = list(known.left_out) if known is not None else []

    @property
    def is_full(self) -> bool:
        """True when no further file is taken."""
        return len(self.files) >= MOST_FILES or self._room <= 0

    def take(self, path: Path, rule: _Rule) -> None:
        """Take one file, or the files below a folder."""
        self._seen.note(path)
        if not os.path.lexists(path):
            return
        real = self.inside(path)
        if real is None:
            self.left_out.append(LeftOutFile(path, _OUTSIDE))
        elif not os.path.isdir(real):
            self.add(path, real, rule.kind, path)
        elif rule.kind is SourceKind.SKILL:
            for one in self._children(path, real):
                if one.is_folder and one.real is not None:
                    self._seen.note(one.path)
                    if os.path.lexists(one.path / SKILL_FILE):
                        self._walk(one.path, one.real, rule, DEPTH, one.path)
        else:
            self._walk(path, real, rule, DEPTH, None)

    def _walk(self, folder: Path, real: Path, rule: _Rule, depth: int, unit: Path | None) -> None:
        for one in self._children(folder, real):
            if one.real is None:
                self._seen.note(one.path)
                self.left_out.append(LeftOutFile(one.path, _OUTSIDE))
            elif one.is_folder:
                if depth:
                    self._walk(one.path, one.real, rule, depth - 1, unit)
            elif one.path.name.endswith(rule.suffix):
                self.add(one.path, one.real, rule.kind, unit or one.path)

    def add(self, path: Path, real: Path, kind: SourceKind, unit: Path) -> None:
        """Take a file with its digest; leave out one beyond the limits, or that cannot be read."""
        self._seen.note(path)
        if self.is_full:
            self._leave_out_once(path, _TOO_MUCH)
            return
        try:
            digest, size = self._digests.digest(real, self._room)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self.left_out.append(LeftOutFile(path, (reason or str(error)).lower()))
            return
        self._room -= size
        self.files.append(SourceFile(path, kind, unit, digest, is_users=self._root is None, plugin=self.plugin))

    def _leave_out_once(self, path: Path, reason: str) -> None:
        if not self.left_out or self.left_out[-1].reason != reason:
            self.left_out.append(LeftOutFile(path, reason))

    def _children(self, folder: Path, real: Path) -> list[_Entry]:
        """Entries of a folder by name; none where the search is full or has looked at too many."""
        self._seen.note(folder)
        self._folders -= 1
        if self._folders < 0 or self._entries <= 0:
            self._leave_out_once(folder, _TOO_WIDE)
            return []
        try:
            with os.scandir(real) as found:
                entries = list(islice(found, self._entries + 1))
        except OSError:
            return []
        if len(entries) > self._entries:
            self._leave_out_once(folder, _TOO_WIDE)
        entries = [one for one in entries[: self._entries] if one.name not in _PASSED]
        self._entries -= len(entries)
        return [self._entry(folder, real, one) for one in sorted(entries, key=lambda one: one.name)]

    def _entry(self, folder: Path, real: Path, found: os.DirEntry[str]) -> _Entry:
        path = folder / found.name
        if not os.path.islink(found):  # below a folder of the project, without a link, nothing leads out of it
            return _Entry(path, real / found.name, found.is_dir(follow_symlinks=False))
        target = self.inside(path)
        return _Entry(path, target, target is not None and os.path.isdir(target))

    def inside(self, path: Path) -> Path | None:
        """The resolved path; None where it leads out of the project, or nowhere."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return None
        return real if self._root is None or real.is_relative_to(self._root) else None
