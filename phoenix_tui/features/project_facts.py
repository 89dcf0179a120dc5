"""Facts about a project that a first AGENTS.md contains, read off its files without a model.

Every text is from outside: each becomes one clean line of bounded length, and each file is read to a bound.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, cast

from msgspec import Struct

from tools.clean import clean, clean_line
from tools.files.own_files import read_regular
from tools.files.walking import walk
from tools.wording import counted, one_line

MOST_FILES: Final = 5_000
"""Files that are counted."""
MOST_READ: Final = 64 * 1024
"""Bytes that are read of one file."""
LONGEST: Final = 120
"""Characters of a command, a name or a line."""
MOST_LINES: Final = 12
"""Commands of one kind, folders and languages each."""
ABOUT: Final = 300
"""Characters of the README's first paragraph."""
LANGUAGES: Final = {
    ".py": "Python", ".js": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++",
    ".hpp": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".sh": "Shell", ".sql": "SQL",
    ".html": "HTML", ".css": "CSS", ".lua": "Lua", ".ex": "Elixir", ".scala": "Scala", ".zig": "Zig",
}  # fmt: skip
_TARGET: Final = re.compile(r"^([A-Za-z][\w-]{0,60}):(?![=:])", re.MULTILINE)
_STEP: Final = re.compile(r"^[ \t]{0,40}(?:- )?run: ([^\s|>][^\n]{0,200})$", re.MULTILINE)
_FIXED: Final = {
    "Cargo.toml": ("cargo build", "cargo test"),
    "go.mod": ("go build ./...", "go test ./..."),
    "pom.xml": ("mvn verify",),
    "gradlew": ("./gradlew build",),
}
_TextOf: TypeAlias = Callable[[Path], str]
"""Reads a file; empty where there is none, or it must not be read."""
_NO_PROSE: Final = ("#", "!", "[", "<", "=", "-", "*", "|", ">", "`")


class ProjectFacts(Struct, frozen=True):
    """Facts in a form to show; every text is clean."""

    name: str
    about: str = ""
    """First paragraph of the README."""
    languages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands of build files, the most specific first."""
    ci: tuple[str, ...] = ()
    """Commands that continuous integration runs."""
    layout: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """Content of an AGENTS.md with these facts alone."""
        parts = (
            f"# {self.name}",
            self.about,
            _listed("Languages", self.languages),
            _listed("Commands", tuple(map(_code, self.commands))),
            _listed("Commands of continuous integration", tuple(map(_code, self.ci))),
            _listed("Layout", self.layout),
        )
        return "\n\n".join(part for part in parts if part) + "\n"


def gather(folder: Path, is_closed: Callable[[Path], bool]) -> ProjectFacts:
    """Read the facts of a folder; a file that `is_closed` is not read, only its name counts."""

    def text_of(path: Path) -> str:
        return "" if is_closed(path) else _text(path)

    files = [Path(path).relative_to(folder) for path in walk(folder, hidden=False, most=MOST_FILES).files]
    return ProjectFacts(
        name=_line(folder.name) or "Project",
        about=_about(folder, text_of),
        languages=tuple(_counted(Counter(LANGUAGES[one.suffix] for one in files if one.suffix in LANGUAGES))),
        commands=_unique(command for read in _BUILD_FILES for command in read(folder, text_of)),
        ci=_unique(_steps(folder, text_of)),
        layout=tuple(_counted(Counter(f"{_line(one.parts[0])}/" for one in files if len(one.parts) > 1))),
    )


def _make(folder: Path, text_of: _TextOf) -> Iterator[str]:
    yield from (f"make {target}" for target in _TARGET.findall(text_of(folder / "Makefile")))


def _package(folder: Path, text_of: _TextOf) -> Iterator[str]:
    scripts = _table(_json(text_of(folder / "package.json")), "scripts")
    lock = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}
    runner = next((name for file, name in lock.items() if (folder / file).exists()), "npm")
    yield from (f"{runner} run {script}" for script in scripts if script.strip())


def _python(folder: Path, text_of: _TextOf) -> Iterator[str]:
    text = text_of(folder / "pyproject.toml")
    try:
        tools = _table(tomllib.loads(text), "tool")
    except (ValueError, RecursionError):
        return
    if "pytest" in text:
        yield "pytest"
    yield from (command for name, command in (("ruff", "ruff check"), ("mypy", "mypy")) if name in tools)


def _fixed(folder: Path, _: _TextOf) -> Iterator[str]:
    for name, commands in _FIXED.items():
        if (folder / name).is_file():
            yield from commands


_BUILD_FILES: Final[tuple[Callable[[Path, _TextOf], Iterator[str]], ...]] = (_make, _package, _python, _fixed)


def _steps(folder: Path, text_of: _TextOf) -> Iterator[str]:
    workflows = folder / ".github" / "workflows"
    paths = walk(workflows, most=20).files if workflows.is_dir() and not workflows.is_symlink() else ()
    for path in paths:
        yield from _STEP.findall(text_of(Path(path)))


def _about(folder: Path, text_of: _TextOf) -> str:
    text = next((text for name in ("README.md", "README.rst", "README") if (text := text_of(folder / name))), "")
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines()]
        if lines and lines[0] and not lines[0].startswith(_NO_PROSE):
            return one_line(clean_line(" ".join(lines)), ABOUT)
    return ""


def _text(path: Path) -> str:
    content = read_regular(path, MOST_READ, follow=False)
    return clean(content.decode("utf-8", "replace")) if content is not None else ""


def _json(text: str) -> object:
    try:
        return cast("object", json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


def _table(document: object, name: str) -> dict[str, object]:
    table = cast("dict[str, object]", document).get(name) if isinstance(document, dict) else None
    return cast("dict[str, object]", table) if isinstance(table, dict) else {}


def _line(text: str) -> str:
    return one_line(clean_line(text), LONGEST)


def _unique(commands: Iterator[str]) -> tuple[str, ...]:
    """The first of them, each once; one with a backtick has no form in Markdown."""
    lines = dict.fromkeys(_line(command) for command in islice(commands, 200) if "`" not in command)
    return tuple(islice(filter(None, lines), MOST_LINES))


def _counted(counts: Counter[str]) -> Iterator[str]:
    yield from (f"{name}: {counted(count, 'file')}" for name, count in counts.most_common(MOST_LINES))


def _code(command: str) -> str:
    return f"`{command}`"


def _listed(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((f"## {title}\n", *(f"- {line}" for line in lines))) if lines else ""
