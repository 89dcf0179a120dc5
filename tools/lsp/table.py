"""The known language servers, data only: the first one of a role that is installed checks a file."""

from __future__ import annotations

from typing import Final

from tools.lsp.definitions import LanguageServer

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
