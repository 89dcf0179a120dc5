"""Files that start by themselves: what an agent, an editor, a shell hook or a build service loads without a question.

A command may write them, since its effect comes later; what it changed is looked at when it ends (SECURITY S11). The
rule is generous, because a wrong guess costs a question and no broken command: a hidden folder counts unless it is
known to be harmless.
"""

from __future__ import annotations

import re
from enum import Enum
from itertools import pairwise
from typing import Final

VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj", ".bzr", "_darcs", ".pijul", "cvs"})
"""Folders of version control, which `tools.process.git_control` and the sandbox look after."""
PRODUCED: Final = frozenset({
    ".fingerprint",
    ".libs",
    ".deps",
    ".cmake",
    ".zig-cache",
    ".kotlin",
    ".nx",
    ".swc",
    ".rollup.cache",
    ".phpunit.cache",
    ".assets",
    ".changeset",
    ".docker",
    ".ebextensions",
    ".images",
    ".logs",
    ".platform",
    ".storybook",
    ".temp",
    ".tmp",
    ".vitepress",
    ".vuepress",
    ".angular",
    ".aws-sam",
    ".build",
    ".bundle",
    ".cache",
    ".dart_tool",
    ".docusaurus",
    ".eggs",
    ".expo",
    ".gradle",
    ".hypothesis",
    ".import_linter_cache",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".sass-cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".yarn/cache",
    ".yarn/unplugged",
})
"""Hidden folders that hold results of tools, or what only their own build reads: nothing in them starts because the
folder is opened.
"""
INSTALLED: Final = frozenset({"node_modules", "site-packages", "dist-packages", "bower_components", "__pycache__"})
"""Folders of packages of others: no one works in them, so what lies there is loaded by no agent or editor."""
FILES: Final = frozenset({
    ".aider.conf.yml",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".clangd",
    ".crush.json",
    ".cursorrules",
    ".dir-locals.el",
    ".drone.yml",
    ".envrc",
    ".exrc",
    ".flake8",
    ".gdbinit",
    ".ghci",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".goosehints",
    ".gvimrc",
    ".inputrc",
    ".irbrc",
    ".kateproject",
    ".lintr",
    ".lldbinit",
    ".lvimrc",
    ".mcp.json",
    ".mise.toml",
    ".netrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".octaverc",
    ".phpactor.json",
    ".pdbrc",
    ".pdbrc.py",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".pryrc",
    ".psqlrc",
    ".pypirc",
    ".renviron",
    ".replit",
    ".roomodes",
    ".rubocop.yml",
    ".rprofile",
    ".screenrc",
    ".solargraph.yml",
    ".sqliterc",
    ".tmux.conf",
    ".tmuxinator.yml",
    ".tool-versions",
    ".travis.yml",
    ".vimrc",
    ".vimspector.json",
    ".windsurfrules",
    ".woodpecker.yml",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "bunfig.toml",
    "codebuff.json",
    "copilot-instructions.md",
    "crush.json",
    "jenkinsfile",
    "mcp.json",
    "mise.toml",
    "opencode.json",
    "opencode.jsonc",
    "sitecustomize.py",
    "skill.md",
    "usercustomize.py",
})
"""Names of files, in small letters, that count in any folder."""
WELL_KNOWN: Final = frozenset({
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".gemini",
    ".githooks",
    ".github",
    ".husky",
    ".idea",
    ".opencode",
    ".phoenix",
    ".vscode",
    ".windsurf",
    ".zed",
})
"""Hidden folders of agents, editors and hooks that many people have."""
SETTINGS: Final = frozenset({
    "agents.md",
    "claude.md",
    "config.json",
    "config.toml",
    "devcontainer.json",
    "gemini.md",
    "hooks.json",
    "launch.json",
    "pre-commit",
    "settings.json",
    "settings.local.json",
    "tasks.json",
})
"""Names of files, in small letters, that start programs or instruct agents from such a folder or beside it."""
_FILE: Final = re.compile(
    r"(?:agents?|claude|gemini|qwen|warp|crush|codex|copilot|jules|cursor)(?:\.[\w-]+)*\.md"
    r"|\.?lefthook(?:-local)?\.(?:ya?ml|toml|json)"
    r"|\.?mise(?:\.[\w-]+)*\.toml"
    r"|.*\.(?:code-workspace|sublime-project|mdc|instructions\.md|prompt\.md|chatmode\.md)"
    r"|\.devcontainer(?:\.[\w-]+)*\.json"
    r"|\.[\w.-]*(?:mcp|rules|hooks?|agents?|instructions|guidelines)[\w.-]*"
    r"|\.(?:husky|huskyrc|overcommit|czrc|tmuxp|envrc|gdbinit|lldbinit)[\w.-]*"
    r"|\.aider\.[\w.-]*\.ya?ml"
    r"|\.(?!_|env\.|pnp\.)[\w.-]+\.(?:local|private|lua|el|vim|py|rb|sh|bash|zsh|fish|exs|[cm]?[jt]s)",
    re.DOTALL,
)
"""Shapes of such names: instructions of agents, managers of hooks, settings of editors and of servers of tools, hidden
code, and files that a hidden file reads beside itself.
"""
_SETTINGS: Final = re.compile(r"(\.[\w-]+rc)(?:\.(?:jsonc?|json5|toml|ya?ml))?")
"""Shape of a hidden file with settings of one program, such as `.bazelrc`, and of the same with an ending."""
_SERVICE: Final = re.compile(r"(\.(?!_)[\w-]+)\.(?:ya?ml|star|dockerfile)")
"""Shape of a hidden file that build services and development environments act on, such as `.gitpod.yml`."""
_DATA_SERVICE: Final = frozenset({
    ".ansible-lint",
    ".codecov",
    ".copier-answers",
    ".cspell",
    ".golangci",
    ".goreleaser",
    ".hadolint",
    ".markdownlint",
    ".markdownlint-cli2",
    ".spectral",
    ".swiftlint",
    ".terraform-docs",
    ".yamllint",
})
"""Names of such files that only a check or a command of the user reads."""
_DATA_SETTINGS: Final = frozenset({
    ".babelrc",
    ".browserslistrc",
    ".c8rc",
    ".commitlintrc",
    ".coveragerc",
    ".eslintrc",
    ".htmlhintrc",
    ".jscsrc",
    ".jshintrc",
    ".markdownlintrc",
    ".mocharc",
    ".nvmrc",
    ".nycrc",
    ".postcssrc",
    ".prettierrc",
    ".releaserc",
    ".remarkrc",
    ".sdkmanrc",
    ".stylelintrc",
    ".swcrc",
    ".textlintrc",
})
"""Names of such files that count only as code, such as `.eslintrc.js`: a build or a check reads the others."""
_TEXT: Final = re.compile(
    r"[^.]*|.*\.(?:jsonc?|json5|toml|ya?ml|xml|mdc?|txt|ini|cfg|conf|lua|el|vim|rb|py|sh|bash|zsh|fish|[cm]?[jt]sx?)"
    r"|.*\.(?:iml|lock|desktop|service|timer|plist|path|nix|star|env|dockerfile|properties|gradle|kts|hcl|pkl)",
    re.DOTALL,
)
"""Files of a hidden folder that a program reads as settings, text or code, in small letters."""


def is_self_starting(path: str) -> bool:
    """True for a path relative to a working directory, with `/`, of a file that starts by itself."""
    folder, _, name = path.rpartition("/")
    place = place_of(folder)
    return place is not FolderKind.QUIET and starts_in(name, place)


def weigh(path: str) -> tuple[int, int, str]:
    """Sort key of the path of a self-starting file: what most programs load first, then what lies higher."""
    *folders, name = path.casefold().split("/")
    is_known = name in FILES or _FILE.fullmatch(name) is not None or not WELL_KNOWN.isdisjoint(folders)
    return (0 if is_known and name in (FILES | SETTINGS) else 1 if is_known else 2), len(folders), path


class FolderKind(Enum):
    """Kind of a folder, by the names of it and of those above."""

    QUIET = 0
    """No file in it counts, nor below."""
    PLAIN = 1
    SETTINGS = 2
    """Below a hidden folder whose files count, whatever they are called."""


def place_of(folder: str) -> FolderKind:
    """The kind of a folder by its path relative to the working directory, empty for that itself."""
    parts = [part.casefold() for part in folder.split("/")] if folder else []
    if any(part in INSTALLED or part in VERSION_CONTROL or part in PRODUCED for part in parts):
        return FolderKind.QUIET
    if any(f"{above}/{part}" in PRODUCED for above, part in pairwise(parts)):
        return FolderKind.QUIET
    return FolderKind.SETTINGS if any(part.startswith(".") for part in parts) else FolderKind.PLAIN


def starts_in(name: str, place: FolderKind) -> bool:
    """True for the name of a file that starts by itself in a folder that is not quiet."""
    folded = name.casefold()
    if folded in FILES or _FILE.fullmatch(folded):
        return True
    if settings := _SETTINGS.fullmatch(folded):
        return settings[1] not in _DATA_SETTINGS or (
            place is FolderKind.SETTINGS and _TEXT.fullmatch(folded) is not None
        )
    if (service := _SERVICE.fullmatch(folded)) and service[1] not in _DATA_SERVICE:
        return True
    return place is FolderKind.SETTINGS and _TEXT.fullmatch(folded) is not None
