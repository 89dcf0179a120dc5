"""A first AGENTS.md, written by the model with its tools, or from the files of the project without a model."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import Struct

from engine.executor.requests import EngineError
from phoenix_tui.features.front_end import require_accepted
from phoenix_tui.features.run_limits import caps_for
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.agent_text import INIT_ORDERS
from tools.arguments import ToolFailure, explain
from tools.clean import clean, clean_line
from tools.files.content import diff_display
from tools.files.location import Location
from tools.files.own_files import read_regular
from tools.files.walking import walk
from tools.files.writing import read_existing, replace_file
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from phoenix_tui.features.front_end import FrontEnd


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
            _format_section("Languages", self.languages),
            _format_section("Commands", tuple(map(_code, self.commands))),
            _format_section("Commands of continuous integration", tuple(map(_code, self.ci))),
            _format_section("Layout", self.layout),
        )
        return "\n\n".join(part for part in parts if part) + "\n"


def gather(folder: Path, is_closed: Callable[[Path], bool]) -> ProjectFacts:
    """Read the facts of a folder; a file that `is_closed` is not read, only its name counts."""

    def text_of(path: Path) -> str:
        content = read_regular(path, MOST_READ, follow=False) if not is_closed(path) else None
        return clean(content.decode("utf-8", "replace")) if content is not None else ""

    files = [Path(path).relative_to(folder) for path in walk(folder, hidden=False, most=MOST_FILES).files]
    return ProjectFacts(
        name=_line(folder.name) or "Project",
        about=_about(folder, text_of),
        languages=tuple(_list_counts(Counter(LANGUAGES[one.suffix] for one in files if one.suffix in LANGUAGES))),
        commands=_unique(command for read in _BUILD_FILES for command in read(folder, text_of)),
        ci=_unique(_steps(folder, text_of)),
        layout=tuple(_list_counts(Counter(f"{_line(one.parts[0])}/" for one in files if len(one.parts) > 1))),
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


def _list_fixed_commands(folder: Path, _: _TextOf) -> Iterator[str]:
    for name, commands in _FIXED.items():
        if (folder / name).is_file():
            yield from commands


_BUILD_FILES: Final[tuple[Callable[[Path, _TextOf], Iterator[str]], ...]] = (
    _make,
    _package,
    _python,
    _list_fixed_commands,
)


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


def _list_counts(counts: Counter[str]) -> Iterator[str]:
    yield from (f"{name}: {pluralize(count, 'file')}" for name, count in counts.most_common(MOST_LINES))


def _code(command: str) -> str:
    return f"`{command}`"


def _format_section(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join((f"## {title}\n", *(f"- {line}" for line in lines))) if lines else ""


NAME: Final = "AGENTS.md"
CHANGED: Final = "AGENTS.md changed in the meantime; nothing was written."
WRITTEN: Final = "AGENTS.md is written. It counts once this folder is trusted: Phoenix asks at its next start here."
CLOSED: Final = "A rule denies to read AGENTS.md, so it is not changed; /rules lists them."
NOTHING_NEW: Final = "AGENTS.md contains these facts already."
REQUEST: Final = """{order}

Look at the project with your tools first; check each fact below, which was gathered without a model. Write at most 60 \
lines of Markdown: the purpose of the project in two sentences, its layout, the commands to build, run, test and lint \
it (one test alone too), and the conventions that its code and documents follow. Leave out what any reader sees at \
once, and invent nothing.

<project_facts>
{facts}
</project_facts>"""
IMPORT: Final = """

CLAUDE.md in the same folder has instructions too, and counts only where there is no AGENTS.md. Begin AGENTS.md with \
the line `@CLAUDE.md`, which adds that file to it, and do not repeat what it says."""
OTHER: Final = "CLAUDE.md"


async def init(front: FrontEnd, _: str) -> None:
    """Ask the model for the file, or write the facts after a yes.

    Raises:
        EngineError: the request was refused, or the file cannot be written.
    """
    folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
    is_closed = front.services.engine.rules.build_denied_test(folder)
    if front.model == GUIDE:
        if is_closed(folder / NAME):
            raise EngineError(CLOSED)
        await _write_facts(front, folder, (await asyncio.to_thread(gather, folder, is_closed)).markdown)
        return
    text = await request_text(folder, is_closed)
    conversation = await front.current()
    require_accepted(await conversation.say(text, (), caps_for(front, conversation)))


async def request_text(folder: Path, is_closed: Callable[[Path], bool]) -> str:
    """The message that asks the model for the file, with facts of files that rules do not deny to read."""
    facts = (await asyncio.to_thread(gather, folder, is_closed)).markdown
    exists = await asyncio.to_thread((folder / NAME).exists)
    inside = facts.replace("</project_facts", "< /project_facts")
    text = REQUEST.format(order=INIT_ORDERS[exists], facts=inside)
    return text if exists or not await asyncio.to_thread((folder / OTHER).exists) else text + IMPORT


async def _write_facts(front: FrontEnd, folder: Path, facts: str) -> None:
    """Show the new file, or what changes in the one that exists; write it after a yes."""
    location = Location(await asyncio.to_thread(folder.resolve), (NAME,), NAME)
    before = await asyncio.to_thread(_present, location)
    if before is None and await asyncio.to_thread((folder / OTHER).exists):
        facts = f"@{OTHER}\n\n{facts}"  # it counts only where there is no AGENTS.md
    if before == facts:
        front.tell(NOTHING_NEW)
        return
    if before is None:
        await front.review(f"New {NAME}, from facts gathered without a model", facts)
        question = f"Write {NAME}?"
    else:
        await front.review(f"Changes to {NAME}", diff_display(NAME, before, facts).diff)
        question = f"Replace the existing {NAME}?"
    if await front.confirm(question, "write it", "leave it"):
        await asyncio.to_thread(_write, location, before, facts)
        front.tell(WRITTEN)


def _present(location: Location) -> str | None:
    """The text of the file, None where there is none; raises EngineError where it is no text file."""
    try:
        existing = read_existing(location)
    except ToolFailure as error:
        raise EngineError(str(error)) from error
    except OSError as error:
        raise EngineError(explain(error, NAME)) from error
    return existing.content.text if existing is not None else None


def _write(location: Location, before: str | None, text: str) -> None:
    """Replace exactly what was shown."""
    if _present(location) != before:
        raise EngineError(CHANGED)
    try:
        replace_file(location, text.encode("utf-8", "replace"))
    except ToolFailure as error:
        raise EngineError(str(error)) from error
    except OSError as error:
        raise EngineError(explain(error, NAME)) from error
