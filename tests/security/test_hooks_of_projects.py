"""SECURITY S8: no hook of a project runs untrusted, outside of the sandbox, or once a script behind it changed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from engine.ports import ConversationChanges
from engine.ports.extensions import HookEvent, HookRequest
from engine.records import PermissionMode
from phoenix_tui.config.paths import find_paths
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.config.sources.finding import STEPS, TOO_FAR
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.wiring.backend import own_paths
from phoenix_tui.wiring.hooks import write_transcripts
from tests.support.engine import StubTool, run_turn, until
from tests.support.hooked import PYTHON, Hooked, Unwatched, bash, group, hooked_engine, says, script, write_hooks
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import needs_full_enforcement
from tools.contract import SandboxMode


def project_hooks(hooked: Hooked, **events: object) -> None:
    write_hooks(hooked.project / ".claude" / "settings.json", **events)


async def run_once(hooked: Hooked, mode: PermissionMode = PermissionMode.AUTO) -> None:
    await hooked.harness.run("go", mode)


async def test_nothing_of_a_project_runs_before_it_is_trusted(tmp_path: Path) -> None:
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        touch = f"touch {hooked.project}/ran"
        project_hooks(
            hooked, SessionStart=touch, UserPromptSubmit=touch, PreToolUse=touch, PostToolUse=touch, Stop=touch
        )
        await run_once(hooked)
        assert not (hooked.project / "ran").exists()
        assert len(hooked.harness.tool.calls) == 1


async def test_a_script_that_changed_after_trust_does_not_run_and_its_call_is_asked_about(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with hooked_engine(tmp_path, bash("ls"), bash("ls"), says("done"), tool=tool) as hooked:
        guard = hooked.project / "guard.sh"
        script(guard, f"#!/bin/sh\necho ok >> {hooked.project}/ran\n")
        project_hooks(hooked, PreToolUse='"$CLAUDE_PROJECT_DIR"/guard.sh')
        hooked.sources.answer(hooked.project, trusted=True)

        conversation = await hooked.harness.start("go")
        await tool.started.wait()
        script(guard, "#!/bin/sh\ntouch stolen\n")
        assert tool.release is not None
        tool.release.set()
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        assert "gave no opinion" in conversation.question.reason
        assert not (hooked.project / "stolen").exists()
        assert (hooked.project / "ran").read_text() == "ok\n"


async def test_a_projects_hook_runs_in_the_sandbox_and_the_users_outside(tmp_path: Path) -> None:
    await needs_full_enforcement()
    outside = tmp_path / "outside"
    outside.mkdir()
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=f"touch {outside}/user")
    async with hooked_engine(tmp_path, bash("ls"), says("done"), confined=True) as hooked:
        project_hooks(hooked, PreToolUse=f"touch {outside}/project; touch inside")
        hooked.sources.answer(hooked.project, trusted=True)
        conversation = await hooked.harness.conversation()
        await conversation.change(ConversationChanges(sandbox=SandboxMode.WORKSPACE))
        await run_turn(conversation, "go")
        assert (outside / "user").exists()
        assert not (outside / "project").exists()
        assert (hooked.project / "inside").exists()


READS_ALL = """
import glob, os
def read(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
def write(path):
    try:
        open(path, "a").write("forged")
    except OSError as error:
        return "refused"
found = {{
    "own": read(given["transcript_path"]),
    "other": read({other!r}),
    "database": read({state!r} + "/phoenix.db"),
    "listed": sorted(glob.glob({state!r} + "/**", recursive=True)),
    "forged": [write(given["transcript_path"]), write(os.path.dirname(given["transcript_path"]) + "/more")],
}}
json.dump(found, open("found.json", "w"))
"""


async def test_a_projects_hook_reads_its_own_transcript_in_the_sandbox_and_no_other(tmp_path: Path) -> None:
    await needs_full_enforcement()
    with folder_outside_temp() as home:
        state = home / "state"
        state.mkdir()
        (state / "phoenix.db").write_text("everything")
        replies = (says("secret of one"), bash("ls"), says("done"))
        async with hooked_engine(home, *replies, confined=True, hidden=(state,)) as hooked:
            transcripts = hooked.hooks.transcripts = write_transcripts(state / "transcripts", hooked.harness.store)
            first = await hooked.harness.run("one")
            other = await transcripts.path_of(first.record)
            assert "secret of one" in (state / "transcripts" / first.id / f"{first.id}.jsonl").read_text()
            script(hooked.project / "reads.py", PYTHON + READS_ALL.format(other=other, state=str(state)))
            project_hooks(hooked, PreToolUse=f"python3 {hooked.project}/reads.py")
            hooked.sources.answer(hooked.project, trusted=True)
            conversation = await hooked.harness.conversation()
            await conversation.change(ConversationChanges(sandbox=SandboxMode.WORKSPACE))
            await run_turn(conversation, "two")
            found = json.loads((hooked.project / "found.json").read_text())
            own = await transcripts.path_of(conversation.record)
    assert '"text":"two"' in found["own"]
    assert (found["other"], found["database"]) == ("FileNotFoundError", "FileNotFoundError")
    shown = [f"{state}/", str(state / "transcripts"), str(Path(own).parent), own]
    assert found["listed"] == sorted(shown)
    assert found["forged"] == ["refused", "refused"]


async def test_an_allow_of_a_project_does_not_open_the_sandbox(tmp_path: Path) -> None:
    allow = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        project_hooks(hooked, PreToolUse=f"echo '{allow}'")
        hooked.sources.answer(hooked.project, trusted=True)
        conversation = await hooked.harness.start("go", PermissionMode.ASK)
        await until(lambda: conversation.question is not None)
        assert hooked.harness.tool.calls == []


def test_the_users_hook_file_is_phoenixs_own_in_its_own_folder_too(tmp_path: Path) -> None:
    paths = find_paths({"PHOENIX_HOME": str(tmp_path), "HOME": str(tmp_path)})
    assert tmp_path.resolve() / "hooks.json" in own_paths(paths, tmp_path.resolve())
    assert tmp_path.resolve() / "mcp_tokens.json" in own_paths(paths, tmp_path.resolve())


async def test_secrets_are_not_in_the_environment(tmp_path: Path) -> None:
    os.environ["ANTHROPIC_API_KEY"] = "sk-secret-1234567890"
    try:
        write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=f"env > {tmp_path}/env")
        async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
            await run_once(hooked)
        assert "sk-secret" not in (tmp_path / "env").read_text()
    finally:
        del os.environ["ANTHROPIC_API_KEY"]


async def test_esc_kills_a_hook_and_the_child_that_left_its_session(tmp_path: Path) -> None:
    child = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' & wait"
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=child)
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go")
        pid_file = tmp_path / "pid"
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
        pid = int(pid_file.read_text())
        conversation.cancel()
        await conversation.wait_idle()
        await until(lambda: not alive(pid))
        assert hooked.harness.tool.calls == []


async def test_esc_kills_hooks_that_nothing_waits_for(tmp_path: Path) -> None:
    waits = {
        "matcher": "",
        "hooks": [{"type": "command", "command": f"echo $$ > {tmp_path}/pid; sleep 600", "async": True}],
    }
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[waits])
    tool = StubTool()
    async with hooked_engine(tmp_path, bash("ls"), says("done"), tool=tool) as hooked:
        conversation = await hooked.harness.run("go")
        assert len(tool.calls) == 1, "nothing waits for it"
        pid_file = tmp_path / "pid"
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
        conversation.cancel()
        await until(lambda: not alive(int(pid_file.read_text())))


async def test_floods_and_unread_input_are_bounded(tmp_path: Path) -> None:
    flood = script(
        tmp_path / "flood.sh", "#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x\nhead -c 9000000 /dev/zero >&2\n"
    )
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=flood)
    big = "x" * 5_000_000
    async with hooked_engine(tmp_path, bash(f"echo {big}"), says("done")) as hooked:
        await run_once(hooked)
        assert len(hooked.harness.tool.calls) == 1
        (run,) = hooked.hooks.history.runs
        assert len(run.reply.stdout) + len(run.reply.stderr) + len(run.reply.stdin) < 100_000


async def test_a_stopped_prompt_hook_leaves_nothing_running(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", UserPromptSubmit=f"echo $$ > {tmp_path}/pid; sleep 600")
    async with hooked_engine(tmp_path, says("never")) as hooked:
        conversation = await hooked.harness.conversation()
        saying = asyncio.create_task(conversation.say("go"))
        pid_file = tmp_path / "pid"
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
        conversation.cancel()
        receipt = await saying
        assert "not sent" in getattr(receipt, "reason", "")
        await until(lambda: not alive(int(pid_file.read_text())))


async def test_many_runs_leak_no_process_and_no_descriptor(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group("cat > /dev/null")] * 1)

    async with hooked_engine(tmp_path, says("done")) as hooked:
        conversation = await hooked.harness.conversation()
        await hooked.hooks.prepare(conversation.record)
        request = HookRequest(HookEvent.PRE_TOOL_USE, conversation.record, ("Bash", "bash"))
        await hooked.hooks.run(request, Unwatched())
        before = descriptors()
        for _ in range(int(os.environ.get("HOOK_RUNS", "50"))):
            (reply,) = await hooked.hooks.run(request, Unwatched())
            assert reply.exit_code == 0
        assert descriptors() == before
        assert len(hooked.hooks.history.runs) == 20


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
        conversation = await hooked.harness.start("go")
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
            await run_turn(conversation, "go")
            assert (hooked.project / "ran").exists()
            assert (hooked.project / "reached").exists() is (mode is PermissionMode.AUTO)
