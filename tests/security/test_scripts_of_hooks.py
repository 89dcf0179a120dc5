"""SECURITY S8: a hook of a project does not run once a script behind it changed, and has no network in mode ask."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from engine.ports import ConversationChanges
from engine.records import PermissionMode
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.config.sources.finding import STEPS, TOO_FAR
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from tests.support.engine import StubTool, until
from tests.support.hooked import bash, hooked_engine, says, script, write_hooks
from tests.support.sandboxes import needs_full_enforcement
from tools.contract import SandboxMode

FILES: dict[str, tuple[str, dict[str, str], str]] = {
    "make, its file": ("make lint", {"Makefile": "lint:\n\ttrue\n"}, "Makefile"),
    "make, a script": ("make lint", {"Makefile": "lint:\n\t@sh tools/lint\n", "tools/lint": "true"}, "tools/lint"),
    "make, a file before its own": ("make lint", {"Makefile": "lint:\n\ttrue\n"}, "GNUmakefile"),
    "make, an included file": ("make lint", {"Makefile": "include rules.mk\n", "rules.mk": "lint:\n"}, "rules.mk"),
    "make in a folder": ("make -C sub lint", {"sub/Makefile": "lint:\n"}, "sub/Makefile"),
    "make behind cd": ("cd sub && make lint", {"sub/Makefile": "lint:\n"}, "sub/Makefile"),
    "npm": ("npm run lint", {"package.json": '{"scripts": {"lint": "true"}}'}, "package.json"),
    "npm, a script": (
        "npm run lint",
        {"package.json": '{"scripts": {"lint": "node tools/lint.js"}}', "tools/lint.js": "1"},
        "tools/lint.js",
    ),
    "npm, its settings": ("npm run lint", {"package.json": "{}", ".npmrc": "x=1"}, ".npmrc"),
    "sh": ("sh lint.sh", {"lint.sh": "true"}, "lint.sh"),
    "sh, a script of a script": ("sh a.sh", {"a.sh": "sh b.sh", "b.sh": "./c", "c": "#!/bin/sh\n"}, "c"),
    "sh, sourced": ("sh a.sh", {"a.sh": ". ./env", "env": "A=1"}, "env"),
    "bash -c": ("bash -c 'sh tools/a.sh'", {"tools/a.sh": "true"}, "tools/a.sh"),
    "python": ("python3 tools/guard.py", {"tools/guard.py": "1"}, "tools/guard.py"),
    "python, beside it": (
        'python3 "$CLAUDE_PROJECT_DIR"/tools/guard.py',
        {"tools/guard.py": "import os, rules\n", "tools/rules.py": "1"},
        "tools/rules.py",
    ),
    "python, a package beside it": (
        "python3 guard.py",
        {"guard.py": "from rules.all import check\n", "rules/all.py": "1"},
        "rules/all.py",
    ),
    "python -m": ("python3 -m guard", {"guard.py": "1"}, "guard.py"),
    "python -m, a package": ("python3 -m guard", {"guard/__main__.py": "1"}, "guard/__main__.py"),
    "node, beside it": ("node a.js", {"a.js": "require('./b')", "b.js": "1"}, "b.js"),
    "just": ("just lint", {"justfile": "lint:\n  true\n"}, "justfile"),
    "task": ("task lint", {"Taskfile.yml": "tasks:\n"}, "Taskfile.yml"),
    "a tool nobody knows": ("frobnicate --all", {"frobnicate.config.js": "1"}, "frobnicate.config.js"),
    "pre-commit": ("pre-commit run", {".pre-commit-config.yaml": "repos: []"}, ".pre-commit-config.yaml"),
    "uv run": ("uv run lint", {"pyproject.toml": "[project]"}, "pyproject.toml"),
    "env": ("env A=1 make lint", {"Makefile": "lint:\n"}, "Makefile"),
}


def write(project: Path, name: str, text: str) -> None:
    path = script(project / name, text)
    if name.endswith((".py", ".js", ".json", "file")):
        Path(path).chmod(0o644)


def opened(folder: Path) -> ProjectSources:
    return ProjectSources(folder / "config", folder / "home", TrustFile(folder / "trust.json"))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_behind_a_hook_switches_it_off(name: str, tmp_path: Path) -> None:
    command, files, changed = FILES[name]
    project = tmp_path / "project"
    write_hooks(project / ".claude" / "settings.json", PreToolUse=command)
    for one, text in files.items():
        write(project, one, text)
    write(project, "src/app.py", "1")
    sources = opened(tmp_path)
    sources.answer(project, trusted=True)
    assert [file.kind for file in sources.look(project).files].count(SourceKind.HOOKS) == 1
    write(project, "src/app.py", "what the project is about")
    assert sources.look(project).of(SourceKind.HOOKS)
    write(project, changed, f"{files.get(changed, '')}\n# rewritten")
    assert not sources.look(project).of(SourceKind.HOOKS)
    assert [change.path for change in sources.look(project).changes] == [project / changed]


def test_a_chain_that_is_too_long_to_be_compared_starts_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write_hooks(project / ".claude" / "settings.json", PreToolUse="sh s0.sh")
    for number in range(STEPS + 2):
        write(project, f"s{number}.sh", f"sh s{number + 1}.sh")
    sources = opened(tmp_path)
    sources.answer(project, trusted=True)
    found = sources.look(project)
    assert not found.of(SourceKind.HOOKS)
    assert [(one.path.name, one.reason) for one in found.left_out] == [("settings.json", TOO_FAR)]


async def test_a_script_that_a_command_rewrote_does_not_run_and_the_call_asks(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with hooked_engine(tmp_path, bash("ls"), bash("ls"), says("done"), tool=tool) as hooked:
        mark = hooked.project / "stolen"
        write(hooked.project, "Makefile", "lint:\n\t@sh tools/lint.sh\n")
        write(hooked.project, "tools/lint.sh", "exit 0\n")
        write_hooks(hooked.project / ".claude" / "settings.json", PreToolUse="make -s lint")
        hooked.sources.answer(hooked.project, trusted=True)
        conversation = await hooked.harness.conversation()
        await conversation.say("go")
        await tool.started.wait()
        write(hooked.project, "tools/lint.sh", f"touch {mark}\n")
        assert tool.release is not None
        tool.release.set()
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        assert "gave no opinion" in conversation.question.reason
        assert not mark.exists()


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO])
async def test_a_hook_of_a_project_reaches_the_network_in_mode_auto_alone(mode: PermissionMode, tmp_path: Path) -> None:
    await needs_full_enforcement()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach = f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}' 2>/dev/null && touch reached; true"
        async with hooked_engine(tmp_path, says("done"), confined=True) as hooked:
            write_hooks(hooked.project / ".claude" / "settings.json", UserPromptSubmit=f"{reach}; touch ran")
            hooked.sources.answer(hooked.project, trusted=True)
            conversation = await hooked.harness.conversation(mode)
            await conversation.change(ConversationChanges(sandbox=SandboxMode.WORKSPACE))
            await conversation.say("go")
            await conversation.wait_idle()
            assert (hooked.project / "ran").exists()
            assert (hooked.project / "reached").exists() is (mode is PermissionMode.AUTO)
