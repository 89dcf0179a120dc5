"""Start of an MCP server: its folder, its files in a sandbox, the program for its headers, its last lines."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports.mcp import FolderServers, ServerDefinition, ServerOrigin
from tools.clean import clean_line
from tools.contract import Captured, Sandbox
from tools.files.own_files import make_folder
from tools.services import ProgramLimits, ServiceCommand
from tools.shell_output import reason_words

if TYPE_CHECKING:
    from tools.process.service import SupervisedServices

SCRIPTS: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".pl", ".php", ".jar")
"""Endings of files that an interpreter is given."""


def start_folder(definition: ServerDefinition, found: FolderServers, neutral: Path) -> Path | None:
    """The neutral folder of a server that the user defined, in a project that is not trusted; None for others.

    `npx NAME`, `python -m NAME`, `uvx` and their settings prefer what lies where they start, and a server of the user
    has tokens of the user.
    """
    if definition.origin is ServerOrigin.PROJECT or definition.cwd or found.trusted:
        return None
    key = hashlib.sha256(f"{definition.name}\0{found.root}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return neutral / key


def start_command(
    definition: ServerDefinition, words: tuple[str, ...], root: Path, neutral: Path | None
) -> ServiceCommand:
    """A program of a definition with the folder in which it starts; blocks for a moment.

    A script that the command line names by a path means the project that it was written in.
    """
    if neutral is None:
        return ServiceCommand(words, Path(definition.cwd) if definition.cwd else root)
    if definition.origin is ServerOrigin.FLAG:
        words = tuple(str(root / word) if _is_path(place, word, root) else word for place, word in enumerate(words))
    make_folder(neutral)
    return ServiceCommand(words, root, start_in=neutral)


def _is_path(place: int, word: str, root: Path) -> bool:
    """True for a path that begins with a dot, and for an argument that names a script there; other names may be those
    of programs and packages.
    """
    return word.startswith(("./", "../")) or (place > 0 and word.endswith(SCRIPTS) and (root / word).is_file())


def project_variables(root: Path) -> dict[str, str]:
    """Variables that name the project to a server, wherever it starts."""
    return {"CLAUDE_PROJECT_DIR": str(root), "PHOENIX_PROJECT_DIR": str(root)}


MOST_LINES: Final = 20
LONGEST: Final = 200


def stderr_lines(captured: Captured) -> list[str]:
    """The last lines, cleaned."""
    return [f"stderr: {clean_line(line)}" for line in _lines(captured)[-MOST_LINES:] if line.strip()]


def error_line(captured: Captured) -> str:
    """The last line that names an error, else the last one; empty where there is none."""
    lines = _lines(captured)
    named = [line for line in lines[-MOST_LINES:] if "error" in line.lower()]
    return clean_line((named or lines)[-1])[:LONGEST] if lines else ""


def _lines(captured: Captured) -> list[str]:
    return (captured.head + captured.tail).decode("utf-8", "replace").strip().splitlines()


SECONDS: Final = 10.0
MOST_BYTES: Final = 64 * 1024
MOST_HEADERS: Final = 50
AGAIN: Final = 60.0
"""Seconds after a run before a refusal of the server (401, 403) runs it again by itself."""
WAY_OUT: Final = "define the server in your own config.toml, whose headersHelper runs outside"
HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,8192}")


class NoHeaders(OSError):
    """A helper that gave no headers; the message is a clause."""


class HelpedHeaders(Struct, eq=False):
    """Headers of one server: the written ones, and those of its helper in their place."""

    root: Path
    sandbox: Sandbox
    found: Mapping[str, str] = field(default_factory=dict[str, str])
    start_in: Path | None = None
    """Neutral folder in which the helper starts, as that of a server."""
    ran_at: float = 0.0
    """Monotonic time of the last run; 0 before one."""

    async def load(self, services: SupervisedServices, definition: ServerDefinition) -> None:
        """Run the helper, where there is one, for the next connection.

        Raises:
            NoHeaders: it failed, took longer than 10 s, or printed anything else.
            OSError: it cannot be started.
        """
        self.found = definition.headers
        if definition.headers_helper:
            self.ran_at = time.monotonic()
            self.found = {**definition.headers, **await self._run_helper(services, definition)}

    @property
    def may_have_expired(self) -> bool:
        """True where a helper ran a while ago: a refusal of the server is reason to run it again."""
        return bool(self.ran_at) and time.monotonic() - self.ran_at > AGAIN

    async def _run_helper(self, services: SupervisedServices, definition: ServerDefinition) -> Mapping[str, str]:
        """Headers that the helper prints; a project's gets no variables of the definition, which may be secrets."""
        is_projects = definition.origin is ServerOrigin.PROJECT
        environment: Mapping[str, str] = dict[str, str]() if is_projects else definition.environment
        command = replace(
            start_command(definition, definition.headers_helper, self.root, self.start_in),
            environment=environment,
            sandbox=self.sandbox,
        )
        ended = await services.run_program(command, None, ProgramLimits(SECONDS, MOST_BYTES))
        if ended.timed_out:
            raise _no_headers(f"took longer than {SECONDS:.0f} s")
        if ended.exit_code != 0:
            words = error_line(ended.stderr)
            reason = reason_words(ended.refused, WAY_OUT)
            raise _no_headers(f"failed: {words}{reason}" if words else f"failed{reason}")
        return _read(ended.stdout)


def _read(printed: Captured) -> Mapping[str, str]:
    wrong = _no_headers(f"printed no JSON object of at most {MOST_HEADERS} headers")
    if printed.dropped:
        raise wrong
    try:
        found = msgspec.json.decode(printed.head + printed.tail, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        raise wrong from None
    valid = all(HEADER.fullmatch(name) and _VALUE.fullmatch(value) for name, value in found.items())
    if len(found) > MOST_HEADERS or not valid:
        raise wrong
    return found


def _no_headers(why: str) -> NoHeaders:
    return NoHeaders(0, f"its headersHelper {why}")


PACKAGES: Final = ("package.json", "pyproject.toml", "setup.py", "go.mod", "Cargo.toml", "pyvenv.cfg", ".git")
"""Entries of the top folder of a program, which reads further files there."""
NODE_MODULES: Final = "node_modules"
MOST: Final = 50
"""Words of a definition that are looked at."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")


class NamedPlaces(Struct, frozen=True):
    """Places that a definition names."""

    programs: tuple[Path, ...] = ()
    """Folders of its program and of files: it sees them, and may change them for itself."""
    folders: tuple[Path, ...] = ()
    """Folders, and files directly in the home folder: it sees them and changes none, not even for itself."""


def find_data_folder(base: Path, definition: ServerDefinition, root: Path) -> Path:
    """Folder of what a server keeps; one of a project keeps it for that project alone."""
    place = str(root) if definition.origin is ServerOrigin.PROJECT else ""
    parts = "\0".join((definition.name, definition.origin.value, place))
    name = _OTHER.sub("_", definition.name)[:40]
    return base / f"{name}-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def find_named_places(definition: ServerDefinition) -> NamedPlaces:
    """Places that a definition of the user names in its command, its variables and `cwd`; none of a project's, whose
    word shows nothing beside the project. Touches the disk.
    """
    if definition.origin is ServerOrigin.PROJECT:
        return NamedPlaces()
    programs: dict[Path, None] = {}
    folders: dict[Path, None] = {}
    for path in list(_list_named_paths(definition))[:MOST]:
        for place in dict.fromkeys((path, path.resolve())):
            if place.is_dir():
                if not _is_shared(place):
                    folders[place] = None
            elif place.parent.is_dir() and not _is_shared(place.parent):
                programs[_top_of(place.parent)] = None
            elif place.is_file():
                folders[place] = None
    return NamedPlaces(tuple(programs), tuple(folders))


def _list_named_paths(definition: ServerDefinition) -> Iterator[Path]:
    command = definition.command[:1]
    if command and "/" not in command[0] and (found := shutil.which(command[0])) is not None:
        yield Path(found)
    for word in (*definition.command, *definition.environment.values(), definition.cwd):
        for text in (word, word.partition("=")[2], *word.split(os.pathsep)):
            if text.startswith(("/", "~/")) and "\0" not in text:
                yield Path(os.path.normpath(Path(text).expanduser()))


def _top_of(folder: Path) -> Path:
    """The top folder of the program that a file in `folder` is a part of."""
    parts = folder.parts
    if NODE_MODULES in parts:
        above = Path(*parts[: parts.index(NODE_MODULES)])
        return folder if _is_shared(above) else above
    for place in (folder, *folder.parents):
        if _is_shared(place):
            break
        if any(os.path.lexists(place / name) for name in PACKAGES):
            return place
    above = folder.parent
    return above if folder.name == "bin" and not _is_shared(above) else folder


def _is_shared(folder: Path) -> bool:
    """True for a folder with files of many programs: the home folder, one for temporary files, one of `PATH`, and those
    above them or of other users.
    """
    entries = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]
    many = [Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    systems = [entry for entry in entries if not entry.is_relative_to(many[0])]
    if any(place.is_relative_to(folder) for place in (*many, *systems)):
        return True
    try:
        return folder.stat().st_uid != os.getuid()
    except OSError:
        return True
