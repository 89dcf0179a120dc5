"""Language servers as files define them, the table of known ones, and their programs.

A program lies outside of the repository, unless the user lets the project's own run.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tools.process.environment import SEARCH_PATHS, users_path
from tools.process.programs import find_program, list_trusted_folders, outside_entries

PLAIN_TEXT: Final = "plaintext"


class LanguageServer(Struct, frozen=True, kw_only=True):
    """One language server; of two with the same role that know a file, the first one that is installed checks it."""

    name: str
    command: tuple[str, ...]
    """Program and arguments; the program is looked for in `PATH` unless it is an absolute path."""
    languages: Mapping[str, str]
    """Language id of the protocol by the pattern of file names, such as `*.py`."""
    role: str = "types"
    runs_project: bool = False
    """True where it runs what a project contains: build scripts, plug-ins, a compiler of the project's own."""
    project_command: tuple[str, ...] = ()
    """Folders of a project that may have its program, below the root."""
    roots: tuple[str, ...] = ()
    """Files that mark a root below the working folder."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Value of `initializationOptions`."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Answers to its questions about settings."""
    passed_over: tuple[str, ...] = ()
    """Codes of problems that do not count."""
    unresolved: tuple[str, ...] = ()
    """Codes of problems that come of packages in a virtual environment of the project that the server may not use."""
    pulls: bool = True
    """False where what it answers to a question about problems is not all that it finds."""
    timeout: float = 60.0
    """Seconds for its start, and for one check that goes on in the background."""
    is_enabled: bool = True
    is_users: bool = False
    """True where the user's config.toml names it: that it is missing is said then."""

    def language_of(self, name: str) -> str:
        """Language id of a file by its name; empty where it knows none."""
        return next((found for pattern, found in self.languages.items() if _matches(name, pattern)), "")


def _matches(name: str, pattern: str) -> bool:
    """True for a name that fits; patterns of Phoenix are `*.SUFFIX` or a whole name."""
    if pattern.startswith("*.") and not set(pattern[1:]) & set("*?["):
        return name.endswith(pattern[1:])
    return fnmatch.fnmatchcase(name, pattern)


_PYTHON: Final = {"*.py": "python", "*.pyi": "python"}
_PYTHON_ROOTS: Final = ("pyrightconfig.json", "pyproject.toml", "setup.py", "setup.cfg")
_PYRIGHT: Final = {
    "python": {"analysis": {"diagnosticMode": "openFilesOnly", "useLibraryCodeForTypes": True}},
    "basedpyright": {"analysis": {"diagnosticMode": "openFilesOnly"}},
}
_VENV: Final = (".venv/bin", "venv/bin")
_NODE: Final = ("node_modules/.bin",)
_SCRIPTS: Final = {
    "*.ts": "typescript",
    "*.tsx": "typescriptreact",
    "*.mts": "typescript",
    "*.cts": "typescript",
    "*.js": "javascript",
    "*.jsx": "javascriptreact",
    "*.mjs": "javascript",
    "*.cjs": "javascript",
}
_C: Final = {
    "*.c": "c",
    "*.h": "c",
    "*.cc": "cpp",
    "*.cpp": "cpp",
    "*.cxx": "cpp",
    "*.hh": "cpp",
    "*.hpp": "cpp",
    "*.m": "objective-c",
}

KNOWN_SERVERS: Final = (
    LanguageServer(
        name="pyright",
        command=("pyright-langserver", "--stdio"),
        languages=_PYTHON,
        roots=_PYTHON_ROOTS,
        settings=_PYRIGHT,
        unresolved=("reportMissingImports", "reportMissingModuleSource"),
        project_command=(*_VENV, *_NODE),
    ),
    LanguageServer(
        name="basedpyright",
        command=("basedpyright-langserver", "--stdio"),
        languages=_PYTHON,
        roots=_PYTHON_ROOTS,
        settings=_PYRIGHT,
        unresolved=("reportMissingImports", "reportMissingModuleSource"),
        project_command=_VENV,
    ),
    LanguageServer(
        name="pylsp",
        command=("pylsp",),
        languages=_PYTHON,
        roots=_PYTHON_ROOTS,
        runs_project=True,
        project_command=_VENV,
    ),
    LanguageServer(
        name="ruff",
        command=("ruff", "server"),
        languages=_PYTHON,
        role="lint",
        roots=("ruff.toml", ".ruff.toml", *_PYTHON_ROOTS),
        project_command=_VENV,
    ),
    LanguageServer(
        name="typescript",
        command=("typescript-language-server", "--stdio"),
        languages=_SCRIPTS,
        roots=("tsconfig.json", "jsconfig.json", "package.json"),
        runs_project=True,
        options={"disableAutomaticTypingAcquisition": True, "hostInfo": "phoenix"},
        project_command=_NODE,
    ),
    LanguageServer(
        name="gopls",
        command=("gopls",),
        languages={"*.go": "go"},
        roots=("go.work", "go.mod"),
        runs_project=True,
    ),
    LanguageServer(
        name="rust-analyzer",
        command=("rust-analyzer",),
        languages={"*.rs": "rust"},
        roots=("Cargo.toml", "rust-project.json"),
        runs_project=True,
        pulls=False,
    ),
    LanguageServer(
        name="clangd",
        command=("clangd", "--background-index=false"),
        languages=_C,
        roots=("compile_commands.json", ".clangd"),
    ),
    LanguageServer(
        name="bash",
        command=("bash-language-server", "start"),
        languages={"*.sh": "shellscript", "*.bash": "shellscript"},
        project_command=_NODE,
    ),
    LanguageServer(
        name="lua",
        command=("lua-language-server",),
        languages={"*.lua": "lua"},
        roots=(".luarc.json",),
        runs_project=True,
    ),
    LanguageServer(
        name="jdtls",
        command=("jdtls",),
        languages={"*.java": "java"},
        roots=("pom.xml", "build.gradle", "build.gradle.kts"),
        runs_project=True,
        timeout=180.0,
    ),
    LanguageServer(
        name="zls",
        command=("zls",),
        languages={"*.zig": "zig"},
        roots=("build.zig",),
        runs_project=True,
    ),
    LanguageServer(
        name="intelephense",
        command=("intelephense", "--stdio"),
        languages={"*.php": "php"},
        roots=("composer.json",),
    ),
    LanguageServer(
        name="ruby-lsp",
        command=("ruby-lsp",),
        languages={"*.rb": "ruby"},
        roots=("Gemfile",),
        runs_project=True,
    ),
    LanguageServer(
        name="json",
        command=("vscode-json-language-server", "--stdio"),
        languages={"tsconfig*.json": "jsonc", "jsconfig*.json": "jsonc", "*.json": "json", "*.jsonc": "jsonc"},
        options={"provideFormatter": False},
    ),
    LanguageServer(
        name="yaml",
        command=("yaml-language-server", "--stdio"),
        languages={"*.yaml": "yaml", "*.yml": "yaml"},
    ),
    LanguageServer(
        name="taplo",
        command=("taplo", "lsp", "stdio"),
        languages={"*.toml": "toml"},
    ),
)


VIRTUAL_ENVIRONMENTS: Final = (".venv", "venv")


def program_of(server: LanguageServer, root: Path, folder: Path, *, allowed: bool) -> tuple[str, ...]:
    """The program of a server with its arguments, none where it is not found; belongs in a thread.

    `allowed`: what lies in the working folder `folder` may run. Elsewhere only folders of `PATH` count that neither lie
    in a repository nor can be written by everybody.
    """
    name, *arguments = server.command
    if os.sep in name:
        usable = (
            Path(name).is_absolute()
            and os.access(name, os.X_OK)
            and (allowed or not Path(name).resolve().is_relative_to(folder))
        )
        return (name, *arguments) if usable else ()
    if allowed and (found := _of_project(server, name, root, folder)):
        return (found, *arguments)
    found = find_program(name, folder)
    return (found, *arguments) if found else ()


def _of_project(server: LanguageServer, name: str, root: Path, folder: Path) -> str:
    """Path of a program in the project; empty without one."""
    places = [base / place for base in dict.fromkeys((root, folder)) for place in server.project_command]
    entries = (Path(entry) for entry in users_path().split(os.pathsep) if entry.startswith("/"))
    for place in (*places, *(entry for entry in entries if entry.is_relative_to(folder))):
        path = place / Path(name).name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return ""


def server_environment(environment: Mapping[str, str], folder: Path, *, allowed: bool) -> dict[str, str]:
    """Variables to add: where the project is not to run, no list of folders leads into it."""
    if allowed:
        return {}
    confined = {
        name: outside_entries(value, folder)
        for name, value in environment.items()
        if name in SEARCH_PATHS and name != "PATH"
    }
    return confined | {"PATH": os.pathsep.join(list_trusted_folders(folder)) or os.defpath, "VIRTUAL_ENV": ""}


def with_packages(server: LanguageServer, root: Path, folder: Path, *, allowed: bool) -> LanguageServer:
    """The server with the virtual environment of the project, or deaf to what it cannot know without it."""
    places = (base / name for base in dict.fromkeys((root, folder)) for name in VIRTUAL_ENVIRONMENTS)
    found = next((place for place in places if (place / "pyvenv.cfg").is_file()), None) if server.unresolved else None
    if found is None:
        return server
    if not allowed:
        return replace(server, passed_over=(*server.passed_over, *server.unresolved))
    python = {"pythonPath": str(found / "bin" / "python")} | dict(server.settings.get("python", {}))
    return replace(server, settings={**server.settings, "python": python})


def root_of(server: LanguageServer, path: Path, folder: Path) -> Path:
    """The root of a file: the outermost folder from the working folder down that has a mark, else that folder."""
    inner = path.parent.relative_to(folder).parts
    for depth in range(len(inner) + 1):
        place = folder.joinpath(*inner[:depth])
        if any((place / mark).exists() for mark in server.roots):
            return place
    return folder
