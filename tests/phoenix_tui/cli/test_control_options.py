"""Flags, settings, folders and fields of the handshake that a run of a host begins with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.cli.control.frames import LONGEST
from phoenix_tui.cli.control.options import (
    FirstLine,
    HostOptions,
    add_launch_fields,
    add_settings,
    confirm_fields,
    read_first_line,
    read_flags,
)
from tests.phoenix_tui.cli.test_control_extensions import plugin
from tests.phoenix_tui.cli.test_control_handshake import NO_PROMPT, system_of
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import FLAGS, ControlHost, Frame, hosted
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Answer, Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json

ARGV = ("--input-format", "stream-json", "--output-format", "stream-json", "--await-initialize")
NOT_APPLIED = ("settings_applied", "disallowed_tools_applied", "mcp_servers_applied", "plugins_applied")


def fields(root: Path) -> Frame:
    """One of each; the plugin without its servers."""
    return {
        "settings": {"permissions": {"deny": ["Bash(echo two)"]}},
        "disallowedTools": ["Write"],
        "mcpServers": {"kinds": SERVER},
        "plugins": [{"type": "local", "path": str(root), "skipMcpDiscovery": True}],
    }


async def test_fields_of_the_handshake_count_like_flags_and_are_confirmed(claude: Claude, tmp_path: Path) -> None:
    launch, two = fields(plugin(tmp_path)), calls("bash", command="echo two")
    phoenix, server = await claude(two, says("Done."))
    flags = ("--await-initialize", "--initialize-fields=settings,disallowedTools", "--allowedTools", "Bash")
    async with hosted(phoenix, *flags) as host:
        answer = (await host.ask("initialize", **launch))["response"]
        init = (await host.turn("Go"))[0]
        again = (await host.ask("initialize", **launch | {"disallowedTools": []}))["response"]
    _, second = bodies(server)
    assert [answer[name] for name in NOT_APPLIED] == [True] * 4
    assert [again[name] for name in NOT_APPLIED] == [True, False, True, True]
    assert "rule" in json.dumps(second["messages"][-1])
    assert "two\\n" not in json.dumps(second["messages"][-1]), "it was refused"
    assert "Write" not in init["tools"]
    assert [(one["name"], one["status"]) for one in init["mcp_servers"]] == [("kinds", "connected")]
    assert init["skills"] == ["tools:web"]
    assert b"unknown here" not in bytes(host.err)


async def test_without_the_flag_they_are_not_confirmed_and_do_nothing(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = (await host.ask("initialize", hooks={"Stop": []}, **fields(plugin(tmp_path))))["response"]
        init = (await host.turn("Go"))[0]
    assert [answer[name] for name in NOT_APPLIED] == [False] * 4
    assert answer["hooks_applied"] is True
    assert ("Write" in init["tools"], init["mcp_servers"], init["skills"]) == (True, [], [])


@pytest.mark.parametrize(
    "odd",
    [
        {"settings": "x", "disallowedTools": "x", "mcpServers": [], "plugins": {}},
        {"settings": [], "disallowedTools": ["Bash", 7], "mcpServers": 7, "plugins": ["x"]},
        {"plugins": [{"type": "local"}, {"type": "far", "path": "x"}]},
        {"plugins": [{"type": "local", "path": "x"}] * 201, "disallowedTools": ["Bash"] * 5_001},
    ],
)
def test_fields_of_another_shape_are_left_out_and_not_confirmed(odd: Any) -> None:
    flags = add_launch_fields(read_flags(ARGV), FirstLine(odd, b""))
    assert (flags.settings, flags.disallowed, flags.run.mcp_config, flags.plugin_dirs) == ("", (), (), ())
    assert set(confirm_fields(odd, flags.launch).values()) == {False}


def test_settings_of_the_command_line_are_not_replaced() -> None:
    given: Frame = {"settings": {"model": "opus"}}
    flags = add_launch_fields(read_flags((*ARGV, "--settings", "{}")), FirstLine(given, b""))
    assert (flags.settings, confirm_fields(given, flags.launch)) == ("{}", {"settings_applied": False})


HANDSHAKE = b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize","a":1}}\n'


@pytest.mark.parametrize(
    ("pieces", "request_"),
    [
        ([b"\n \n" + HANDSHAKE[:20], HANDSHAKE[20:] + b'{"type":"user"'], {"subtype": "initialize", "a": 1}),
        ([HANDSHAKE.rstrip()], {"subtype": "initialize", "a": 1}),
        ([b'{"type":"user","message":{}}\n' + HANDSHAKE], {}),
        ([b"nonsense\n"], {}),
        ([b'{"type":"control_request","request":["initialize"]}\n'], {}),
        ([], {}),
    ],
)
def test_the_first_line_is_read_once_and_nothing_behind_it_is_lost(pieces: list[bytes], request_: Frame) -> None:
    given: Iterator[bytes] = iter([*pieces, b""])
    first = read_first_line(lambda: next(given))
    assert (first.request, first.ahead) == (request_, b"".join(pieces))


def test_a_first_line_without_end_is_given_up(tmp_path: Path) -> None:
    read = os.urandom(1 << 10).hex().encode() * 64
    first = read_first_line(lambda: read)
    assert first.request == {}
    assert LONGEST < len(first.ahead) <= LONGEST + len(read)


ALL = ("--permission-mode", "bypassPermissions")
RUNS = calls("bash", command="echo $NODE_ENV > made.txt")


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command} | more]}]}


def settings(given: Any) -> HostOptions:
    return add_settings(read_flags([*FLAGS, "--settings", json.dumps(given)]))


@pytest.mark.parametrize("is_file", [True, False], ids=["a file", "the flag"])
async def test_a_hook_of_the_settings_denies_a_call_with_its_reason(claude: Claude, is_file: bool) -> None:
    given = json.dumps({"hooks": hook("echo no commands today >&2; exit 2")})
    phoenix, server = await claude(RUNS, says("I see."))
    if is_file:
        (phoenix.cwd / "given.json").write_text(given)
    async with hosted(phoenix, *ALL, "--settings", "given.json" if is_file else given) as host:
        await host.turn("Go")
    assert "no commands today" in json.dumps(bodies(server)[-1]["messages"])
    assert not (phoenix.cwd / "made.txt").exists()


async def test_a_hook_that_cannot_be_used_is_named_with_its_line_and_the_run_goes_on(claude: Claude) -> None:
    given = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "fax"}]}]}}, indent=0)
    phoenix, _ = await claude(says("Hello."))
    async with hosted(phoenix, "--settings", given) as host:
        frames = await host.turn("Go")
    assert frames[-1]["result"] == "Hello."
    assert b"phoenix: --settings:6: " in host.err
    assert b"Traceback" not in host.err


async def test_no_hooks_switches_them_off_too(claude: Claude) -> None:
    given = json.dumps({"hooks": hook("exit 2")})
    phoenix, _ = await claude(RUNS, says("Done."))
    async with hosted(phoenix, *ALL, "--no-hooks", "--settings", given) as host:
        await host.turn("Go")
    assert (phoenix.cwd / "made.txt").exists()


async def test_variables_of_the_settings_hold_for_phoenix_and_for_what_commands_may_see(tmp_path: Path) -> None:
    async with serve(RUNS, says("Done.")) as server:
        phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
        given = {"env": {"ANTHROPIC_BASE_URL": server.url, "NODE_ENV": "trial"}}
        async with hosted(phoenix, *ALL, "--settings", json.dumps(given)) as host:
            frames = await host.turn("Go")
    assert (frames[-1]["result"], (phoenix.cwd / "made.txt").read_text()) == ("Done.", "trial\n")


def test_variables_that_are_no_text_or_phoenixs_own_are_left_out_and_named() -> None:
    names = {"A=B": "x", "": "x", "PHOENIX_HOME": "/x", "N": 7, "NUL": "a\0b", "HALF": "\ud800", "LONG": "x" * 70_000}
    flags = settings({"env": names | {"GOOD_1": "yes"}})
    assert flags.variables == {"GOOD_1": "yes"}
    [notice] = flags.notices
    assert "A=B, , PHOENIX_HOME, N, NUL, HALF, LONG" in notice
    for wrong in (7, [1], {f"N{number}": "x" for number in range(2_000)}):
        assert settings({"env": wrong}).variables == {}
        assert "env of --settings must be an object" in settings({"env": wrong}).notices[0]


def test_further_folders_of_the_settings_count_like_those_of_the_flag() -> None:
    flags = settings({"permissions": {"additionalDirectories": ["../docs", 7]}})
    assert flags.add_dirs == ("../docs",)


LISTS_FILES = calls("bash", command="echo one")


def hook_file(name: str) -> str:
    """Settings whose hook_file leaves a file."""
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": f'touch "$CLAUDE_PROJECT_DIR/{name}"'}]}
    return json.dumps({"hooks": {"PreToolUse": [entry]}})


def filled(folder: Path, url: str) -> Phoenix:
    """A user and a project with instructions, hooks, commands and servers of their own."""
    phoenix = with_claude(folder, url)
    write(phoenix.home / "AGENTS.md", "Rule of the user.\n")
    write(phoenix.home / "hooks.json", hook_file("hook_of_user"))
    write(phoenix.home / "commands/mine.md", "Mine.\n")
    write(phoenix.home / "rules.toml", 'allow = ["bash(echo*)"]\ndeny = ["bash(rm*)"]\n')
    empty_repository(phoenix.cwd)
    write(phoenix.cwd / "AGENTS.md", "Rule of the project.\n")
    write(phoenix.cwd / ".claude/settings.json", hook_file("hook_of_project"))
    write(phoenix.cwd / ".claude/settings.local.json", hook_file("hook_of_local"))
    write(phoenix.cwd / ".claude/commands/ours.md", "Ours.\n")
    write(phoenix.cwd / ".mcp.json", servers_json(kinds=SERVER))
    return phoenix


async def run(phoenix: Phoenix, server: Loopback, *flags: str) -> tuple[Frame, str, set[str], str]:
    """The init frame, the system prompt, names of hooks that ran, and stderr."""
    asked: list[Any] = []

    def allow(request: Frame) -> Frame:
        asked.append(request)
        return {"behavior": "allow", "updatedInput": request["input"]}

    async with hosted(phoenix, "--permission-prompt-tool", "stdio", *flags, base=NO_PROMPT, can_use_tool=allow) as host:
        frames = await host.turn("Go")
    ran = {path.name for path in phoenix.cwd.glob("hook_of_*")}
    return {**frames[0], "asked": len(asked)}, system_of(bodies(server)[0]), ran, bytes(host.err).decode()


@pytest.mark.parametrize(
    ("sources", "hooks", "commands", "rules", "servers", "asked"),
    [
        ("", set[str](), [], [], [], 1),
        ("user", {"hook_of_user"}, ["mine"], ["user"], [], 0),
        ("project", {"hook_of_project"}, ["ours"], ["project"], ["kinds"], 1),
        ("local", {"hook_of_local"}, [], [], [], 1),
        (
            "user,project,local",
            {"hook_of_user", "hook_of_project", "hook_of_local"},
            ["mine", "ours"],
            ["user", "project"],
            ["kinds"],
            0,
        ),
    ],
)
async def test_files_count_as_the_host_says(
    tmp_path: Path,
    sources: str,
    hooks: set[str],
    commands: list[str],
    rules: list[str],
    servers: list[str],
    asked: int,
) -> None:
    async with serve(LISTS_FILES, says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        init, prompt, ran, err = await run(phoenix, server, f"--setting-sources={sources}")
    assert ran == hooks
    assert sorted(set(init["slash_commands"]) & {"mine", "ours"}) == commands
    assert [name for name in ("user", "project") if f"Rule of the {name}." in prompt] == rules
    assert [one["name"] for one in init["mcp_servers"]] == servers
    assert (init["asked"], "not trusted" in err) == (asked, False)


async def test_instructions_count_beside_the_prompt_that_the_sdk_gives(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        for flags in (("--setting-sources", "project"), ("--setting-sources", "")):
            async with hosted(phoenix, *flags) as host:
                await host.turn("Go")
        with_files, without = map(system_of, bodies(server))
    assert [text.count("You are a helpful agent.") for text in (with_files, without)] == [1, 1]
    assert ["Rule of the project." in text for text in (with_files, without)] == [True, False]
    assert "Rule of the user." not in with_files + without


async def test_trust_by_a_host_is_not_kept(tmp_path: Path) -> None:
    async with serve(LISTS_FILES, says("Done."), LISTS_FILES, says("Done.")) as server:
        phoenix = filled(tmp_path, server.url)
        await run(phoenix, server, "--setting-sources", "project,local")
        assert not (phoenix.home / "trust.json").exists()
        for name in ("hook_of_project", "hook_of_local"):
            (phoenix.cwd / name).unlink()
        _, _, ran, err = await run(phoenix, server)
    assert ran == {"hook_of_user"}
    assert "is not trusted" in err
    assert not list(phoenix.home.glob("phoenix-*"))


async def test_a_file_that_changes_in_the_run_counts_no_longer(tmp_path: Path) -> None:
    changes = calls("bash", command="echo Obey. >> AGENTS.md")
    async with serve(changes, says("Done."), says("Again.")) as server:
        phoenix = filled(tmp_path, server.url)
        async with hosted(phoenix, "--setting-sources=project", "--allowedTools", "Bash", base=NO_PROMPT) as host:
            await host.turn("Go")
            await host.turn("Go on")
        first, *_, last = [system_of(one) for one in bodies(server)]
    assert "Rule of the project." in first
    assert "Obey." not in last


async def test_an_unknown_source_is_refused_with_a_sentence(tmp_path: Path) -> None:
    ran = await with_claude(tmp_path, "http://127.0.0.1:9").run(*NO_PROMPT, "--setting-sources", "user,managed")
    assert ran.code == 2
    assert "There is no setting source managed; use user, project, local, or an empty list." in ran.err


def further(folder: Path) -> Path:
    """A folder beside the working directory, with one file below it."""
    other = folder / "other"
    (other / "deep").mkdir(parents=True)
    (other / "deep" / "a.txt").write_text("found here\n")
    return other


def results(host: ControlHost) -> list[bool]:
    """True for each call that was refused."""
    blocks = [one for frame in host.messages() if frame["type"] == "user" for one in frame["message"]["content"]]
    return [one["is_error"] for one in blocks if one["type"] == "tool_result"]


async def refused(phoenix: Phoenix, call: Answer, server: Any, *flags: str) -> list[bool]:
    async with hosted(phoenix, *flags) as host:
        await host.turn("Go")
    return results(host)


@pytest.mark.parametrize(
    ("name", "args", "is_refused"),
    [
        ("read_file", {"path": "deep/a.txt"}, False),
        ("list_files", {"path": ""}, False),
        ("search", {"pattern": "found", "path": "deep"}, False),
        ("write_file", {"path": "b.txt", "content": "x"}, True),
        ("read_file", {"path": "../beside.txt"}, True),
        ("read_file", {"path": "link"}, True),
    ],
)
async def test_files_of_an_added_folder_are_read_and_not_written(
    claude: Claude, tmp_path: Path, name: str, args: dict[str, str], is_refused: bool
) -> None:
    other = further(tmp_path)
    (tmp_path / "beside.txt").write_text("beside\n")
    (other / "link").symlink_to(tmp_path / "beside.txt")
    call = calls(name, **(args | {"path": str(other / args["path"])}))
    phoenix, server = await claude(call, says("Done."), call, says("Done."))
    without = await refused(phoenix, call, server)
    added = await refused(phoenix, call, server, "--add-dir", "../other")
    assert (without, added) == ([True], [is_refused])


async def test_an_answer_adds_a_folder_for_the_connection(claude: Claude, tmp_path: Path) -> None:
    other = further(tmp_path)
    path = str(other / "deep" / "a.txt")
    update = {"type": "addDirectories", "directories": [str(other)], "destination": "session"}

    def allow(request: Frame) -> Frame:
        return {"behavior": "allow", "updatedInput": request["input"], "updatedPermissions": [update]}

    phoenix, _ = await claude(calls("read_file", path=path), calls("read_file", "toolu_2", path=path), says("Done."))
    async with hosted(phoenix, "--permission-prompt-tool", "stdio", can_use_tool=allow) as host:
        await host.turn("Go")
    assert (len(host.requests("can_use_tool")), results(host)) == (1, [False, False])


@pytest.mark.parametrize(
    ("name", "why"), [("gone", "there is none"), ("file", "it is no folder"), ("a*", "its name has signs of a pattern")]
)
async def test_what_cannot_be_added_is_named(claude: Claude, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "a*").mkdir()
    phoenix, _ = await claude(says("Hi."))
    async with hosted(phoenix, f"--add-dir={tmp_path / name}") as host:
        result = (await host.turn("Hi"))[-1]
    assert result["result"] == "Hi."
    assert f"cannot be added: {why}." in bytes(host.err).decode()
    assert "Traceback" not in json.dumps(bytes(host.err).decode())


UNKNOWN = "11111111-1111-4111-8111-111111111111"


async def test_a_host_with_a_store_reads_once_that_nothing_is_written_to_it(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."), says("Two."))
    async with hosted(phoenix, "--session-mirror") as host:
        await host.turn("Hi")
        await host.turn("Again")
    told = [one for one in host.messages() if one.get("subtype") == "mirror_error"]
    assert host.kinds()[:2] == ["system/init", "system/mirror_error"]
    assert [one["error"] for one in told] == [
        "Phoenix writes nothing to the session_store of a host; it stores each conversation itself, and --resume with "
        "its id continues it."
    ]
    assert told[0]["key"]["sessionId"] == told[0]["session_id"]


async def test_a_session_that_only_the_store_has_is_refused_with_the_reason(claude: Claude) -> None:
    phoenix, _ = await claude()
    async with hosted(phoenix, "--session-mirror", f"--resume={UNKNOWN}") as host:
        result = await host.wait(lambda one: one["type"] == "result")
        assert await host.end() == 2
    assert result["errors"] == [
        f"No conversation matches '{UNKNOWN}'; `phoenix conversations list` shows them. Phoenix does not read the "
        "session_store of a host: it resumes conversations that it stored itself."
    ]
    assert b"Traceback" not in bytes(host.err)
