"""MCP servers in `phoenix -p`, `phoenix mcp` and the composer: tools, sign-in, prompts, failures."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState, confinement
from engine.records import build_unstored_record
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.text.server_text import details, origin_words, sandbox_words, show_origin
from phoenix_tui.wiring.headless import start_servers
from tests.support.cli import ROOT, Phoenix, ended, phoenix_in, with_claude
from tests.support.fake_mcp import FakeServers, a_server
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, serve
from tests.support.mcp_phoenix import SERVER, servers_json, write_servers
from tests.support.mcp_web import SignInServer, WebServer, serving
from tests.support.program import program
from tools.contract import Enforcement, SandboxMode

AUTO = ("--permission-mode", "auto")


def names(request: Any) -> list[str]:
    """Tools of servers in a request."""
    return [tool["name"] for tool in request.json["tools"] if tool["name"].startswith("mcp__")]


def result(server: Loopback) -> dict[str, Any]:
    """The tool result that the model was sent."""
    messages: Any = server.requests[1].json["messages"]
    found = [block for block in messages[-1]["content"] if block["type"] == "tool_result"]
    return dict(found[0])


def text_of(block: dict[str, Any]) -> str:
    content = block["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


async def test_a_model_calls_a_tool_of_a_server_on_the_command_line(claude: Claude) -> None:
    phoenix, server = await claude(calls("mcp__kinds__echo", text="hello there"), says("Done."))
    ran = await phoenix.run("-p", *AUTO, "--mcp-config", servers_json(kinds=SERVER), "Go")
    assert (ran.code, ran.out.strip()) == (0, "Done."), ran.err
    offered = names(server.requests[0])
    assert "mcp__kinds__dotted_name_and_more" in offered
    assert offered == sorted(offered)
    assert text_of(result(server)) == "hello there"
    system = json.dumps(server.requests[0].json["system"])
    assert "Use with care." in system
    assert "not by the user" in system


async def test_the_keys_of_phoenix_do_not_reach_a_server(claude: Claude) -> None:
    definition = {**SERVER, "env": {"PYTHONPATH": str(ROOT), "GIVEN": "${FROM_USER:-x}"}}
    phoenix, server = await claude(calls("mcp__kinds__env"), says("Done."), MY_TOKEN="t")
    ran = await phoenix.run("-p", *AUTO, "--mcp-config", servers_json(kinds=definition), "Go")
    assert ran.code == 0, ran.err
    variables = text_of(result(server)).split()
    assert "GIVEN" in variables
    assert not {"ANTHROPIC_API_KEY", "MY_TOKEN", "PHOENIX_HOME"} & set(variables)


async def test_servers_of_a_project_wait_for_trust_and_then_work(claude: Claude) -> None:
    phoenix, server = await claude(says("No."), calls("mcp__kinds__echo", text="hi"), says("Done."))
    write_servers(phoenix.cwd, kinds=SERVER)
    first = await phoenix.run("-p", *AUTO, "Go")
    second = await phoenix.run("-p", *AUTO, "--trust", "Go")
    assert (first.code, second.code) == (0, 0), second.err
    assert "1 server left out" in first.err
    assert names(server.requests[0]) == []
    assert "mcp__kinds__echo" in names(server.requests[1])


async def test_a_servers_failure_is_named_and_fails_no_run_unless_it_is_required(claude: Claude) -> None:
    config = '[mcp.gone]\ncommand = "/no/such/program"\n'
    phoenix, _ = await claude(says("Done."), says("Done."))
    file = phoenix.home / "config.toml"
    file.write_text(config)
    ran = await phoenix.run("-p", "Go")
    file.write_text(f"{config}required = true\n")
    required = await phoenix.run("-p", "Go")
    assert ran.code == 0, ran.err
    assert "MCP server 'gone' is left out: it cannot be started" in ran.err
    assert required.code == 1
    assert "MCP server 'gone' is required and failed" in required.err


async def test_stream_json_names_servers_with_their_status(claude: Claude) -> None:
    phoenix, _ = await claude(says("Done."))
    given = servers_json(kinds=SERVER, bad={"type": "tcp"}, off=SERVER | {"enabled": False})
    ran = await phoenix.run("-p", "--output-format", "stream-json", "--mcp-config", given, "Go")
    init = ran.lines[0]
    assert init["mcp_servers"] == [
        {"name": "bad", "status": "failed", "source": "--mcp-config"},
        {"name": "kinds", "status": "connected", "source": "--mcp-config"},
        {"name": "off", "status": "disabled", "source": "--mcp-config"},
    ]
    assert "mcp__kinds__echo" in init["tools"]


async def test_a_wrong_mcp_config_is_a_usage_error_with_its_line(tmp_path: Path) -> None:
    async with serve() as server:
        phoenix: Phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run("-p", "--mcp-config", '{"mcpServers": {"a": 1,}}', "Go")
        gone = await phoenix.run("-p", "--mcp-config", "nowhere.json", "Go")
    assert (ran.code, gone.code) == (2, 2)
    assert "--mcp-config is not valid JSON: line 1" in ran.err
    assert "nowhere.json cannot be read" in gone.err


async def test_strict_leaves_all_other_servers_out(claude: Claude) -> None:
    phoenix, server = await claude(says("Done."))
    (phoenix.home / "config.toml").write_text('[mcp.gone]\ncommand = "/no/such/program"\nrequired = true\n')
    given = servers_json(one=SERVER)
    ran = await phoenix.run("-p", "--strict-mcp-config", "--mcp-config", given, "Go")
    assert ran.code == 0, ran.err
    assert "mcp__one__echo" in names(server.requests[0])


async def test_a_second_run_offers_the_known_tools_and_the_cache_is_private(claude: Claude) -> None:
    given = ("--mcp-config", servers_json(kinds=SERVER))
    phoenix, server = await claude(says("Done."), calls("mcp__kinds__weather"), says("Done."))
    await phoenix.run("-p", *AUTO, *given, "Go")
    ran = await phoenix.run("-p", *AUTO, *given, "Go")
    first, second = names(server.requests[0]), names(server.requests[1])
    messages: Any = server.requests[2].json["messages"]
    assert ran.code == 0, ran.err
    assert first == second
    assert (phoenix.home / "mcp_cache.json").stat().st_mode & 0o777 == 0o600
    assert '{\\"degrees\\":21.5}' in json.dumps(messages)


async def test_a_run_fails_where_a_required_server_is_still_connecting(tmp_path: Path) -> None:
    slow = replace(a_server("files", ServerState.CONNECTING), is_required=True, tools=())
    servers: Any = FakeServers(replace(slow, state=ServerState.WAITING))
    servers.settled = [slow]
    record = build_unstored_record(tmp_path, SandboxMode.OFF, required=False)
    with pytest.raises(CommandError, match="'files', which is required, is still connecting after 30 s; `phoenix mcp"):
        await start_servers(servers, record)


async def test_a_users_server_is_added_tried_and_removed_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    config = phoenix.home / "config.toml"
    before = '# mine\ntheme = ""  # dark\n'
    config.write_text(before)
    command = (str(SERVER["command"]), "-m", "tests.support.mcp_kinds")
    added = await phoenix.run("mcp", "add", "-e", f"PYTHONPATH={ROOT}", "kinds", "--", *command)
    assert added.out == f"Added kinds to {config}\n", added.err
    again = await phoenix.run("mcp", "add", "kinds", "--", "x")
    assert (again.code, again.err) == (2, f"phoenix: {config} has a server kinds; remove it first.\n")
    listed = await phoenix.run("mcp", "list", "--json")
    assert [(one["name"], one["state"], one["source"]) for one in listed.json] == [
        ("kinds", "not started", str(config))
    ]
    tried = await phoenix.run("mcp", "test")
    assert (tried.code, tried.out.partition(" · ")[0]) == (0, "kinds: connected, 25 tools")
    shown = await phoenix.run("mcp", "get", "kinds")
    assert "mcp__kinds__echo" in shown.out
    removed = await phoenix.run("mcp", "remove", "kinds")
    assert removed.out == f"Removed kinds from {config}\n"
    assert before.strip() in config.read_text()
    assert tomllib.loads(config.read_text()).get("mcp", {}) == {}


async def test_a_projects_server_goes_into_mcp_json_and_waits_for_trust(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    definition = '{"type": "http", "url": "https://example.com/mcp", "headers": {"A": "${TOKEN}"}}'
    added = await phoenix.run("mcp", "add-json", "-s", "project", "web", definition)
    assert added.code == 0, added.err
    file = phoenix.cwd / ".mcp.json"
    assert json.loads(file.read_text()) == {"mcpServers": {"web": json.loads(definition)}}
    assert (await phoenix.run("mcp", "list", "--json")).json == []
    address = await phoenix.run("mcp", "add", "-H", "X-A: b", "other", "https://example.com/x", "-s", "project")
    assert address.code == 0, address.err
    assert json.loads(file.read_text())["mcpServers"]["other"] == {
        "type": "http",
        "url": "https://example.com/x",
        "headers": {"X-A": "b"},
    }
    assert (await phoenix.run("mcp", "remove", "web", "-s", "project")).code == 0
    assert list(json.loads(file.read_text())["mcpServers"]) == ["other"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("remove", "none"), "has no server none; `phoenix mcp list` shows all."),
        (("add-json", "a", "{"), "The definition is not valid JSON"),
        (("add-json", "a", "[]"), "must be a JSON table"),
        (("add-json", "a", '{"type": "tcp"}'), "has the unknown type 'tcp'"),
        (("add", "-e", "X", "a", "b"), "'X' must have the form NAME=VALUE."),
        (("add", "a", "https://x/y", "z"), "An address takes no further arguments"),
        (("get", "none"), "There is no MCP server none; `phoenix mcp list` shows all."),
    ],
)
async def test_a_mistake_is_a_usage_error_and_changes_no_file(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = await phoenix.run("mcp", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert not (phoenix.home / "config.toml").exists()


async def test_a_broken_file_stays_as_it_is_and_is_named(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    file = phoenix.cwd / ".mcp.json"
    file.write_text("{broken")
    ran = await phoenix.run("mcp", "add", "-s", "project", "a", "b")
    assert (ran.code, file.read_text()) == (2, "{broken")
    assert "is not valid JSON: line 1" in ran.err


async def test_a_server_that_does_not_answer_fails_the_test_with_its_reason(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    config = '[mcp.bad]\ncommand = "/no/such"\n[mcp.off]\ncommand = "x"\nenabled = false\n'
    (phoenix.home / "config.toml").write_text(config)
    ran = await phoenix.run("mcp", "test")
    assert ran.code == 1
    assert "bad: failed, it cannot be started" in ran.out
    doctor = await phoenix.run("doctor")
    assert "1 server defined; `phoenix mcp test` connects to them" in doctor.out
    assert "bad: sandbox off, as conversations here: it can read and write what you can" in doctor.out
    assert "off: sandbox" not in doctor.out, "it is not used"


async def test_login_prints_the_address_takes_a_pasted_one_and_logout_forgets(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        added = await phoenix.run("mcp", "add", "web", server.url)
        assert added.code == 0, added.err
        async with program(phoenix, "mcp", "login", "web", rows=200, columns=1_000) as running:
            await running.shows(f"Sign in to web at 127.0.0.1:{server.port}", "paste the address here")
            found = re.search(r"http://\S*authorization\S+", running.text)
            assert found is not None
            state = parse_qs(urlsplit(found[0]).query)["state"][0]
            await running.press("http://elsewhere/?code=c&state=wrong\r", "its state is another one")
            await running.press(f"http://elsewhere/?code=c&state={state}\r", "Signed in to web.")
        tried = await phoenix.run("mcp", "test", "web")
        assert (tried.code, "web: connected, 1 tool" in tried.out) == (0, True), tried.out
        assert (await phoenix.run("mcp", "logout", "web")).code == 0
        assert (await phoenix.run("mcp", "test", "web")).code == 1


async def test_login_without_a_keyboard_waits_for_the_browser_and_says_no_more(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        await phoenix.run("mcp", "add", "web", server.url)
        process = await phoenix.start("mcp", "login", "web")  # stdin is /dev/null
        assert process.stdout is not None
        while not (found := re.search(r"http://\S*authorization\S+", (await process.stdout.readline()).decode())):
            pass
        asked = parse_qs(urlsplit(found[0]).query)
        back = f"{asked['redirect_uri'][0]}?code=c&state={asked['state'][0]}"
        await asyncio.to_thread(lambda: urlopen(back, timeout=30).read())
        ran = await ended(process)
    assert (ran.code, ran.err) == (0, "")
    assert "Signed in to web." in ran.out


async def test_a_refused_sign_in_fails_with_the_reason(tmp_path: Path) -> None:
    server = SignInServer()
    phoenix = phoenix_in(tmp_path)
    async with serving(server):
        await phoenix.run("mcp", "add", "web", server.url)
        async with program(phoenix, "mcp", "login", "web", rows=200, columns=1_000) as running:
            await running.shows("paste the address here")
            found = re.search(r"http://\S*authorization\S+", running.text)
            assert found is not None
            state = parse_qs(urlsplit(found[0]).query)["state"][0]
            running.type(f"http://elsewhere/?error=access_denied&state={state}\r")
            await running.shows("The authorization server refused: access_denied")


async def test_login_to_what_needs_none_fails_with_a_sentence(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with serving(WebServer()) as server:
        await phoenix.run("mcp", "add", "web", server.url)
        ran, unknown = await asyncio.gather(phoenix.run("mcp", "login", "web"), phoenix.run("mcp", "login", "other"))
    assert (ran.code, unknown.code) == (1, 1)
    assert "is connected: there is nothing to sign in to" in ran.err
    assert "no such MCP server" in unknown.err


OFF = "it can read and write what you can"


def test_a_screen_shows_the_home_folder_of_a_file_as_a_tilde_and_json_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/robin")
    path = str(Path("/home/robin/.config/phoenix/config.toml"))
    server = replace(a_server(), source=path)
    assert show_origin(server) == "~/.config/phoenix/config.toml"
    assert "defined in   ~/.config/phoenix/config.toml" in details(server)
    assert origin_words(server) == path


def test_details_say_that_hosts_are_no_limit_of_a_server() -> None:
    confined = replace(a_server(), sandbox=SandboxMode.WORKSPACE)
    assert "network      every host: the hosts of commands do not limit servers" in details(confined)
    assert "network      none: sandbox_network = false" in details(replace(confined, has_network=False))
    assert "network " not in details(a_server())


@pytest.mark.parametrize(
    ("own", "chosen", "enforcement", "said"),
    [
        (None, False, Enforcement.FULL, "workspace, as conversations here"),
        (SandboxMode.READ_ONLY, False, Enforcement.FULL, "read-only, by its definition"),
        (SandboxMode.OFF, False, Enforcement.FULL, f"off, by its definition: {OFF}"),
        (SandboxMode.OFF, True, Enforcement.FILES, f"off, by your choice: {OFF}"),
        (None, False, Enforcement.FILES, "workspace, weakened: this system guards files alone"),
        (None, False, Enforcement.NONE, f"off, since this system can enforce none: {OFF}"),
    ],
)
def test_the_sandbox_of_a_server_is_named_with_its_reason(
    own: SandboxMode | None, chosen: bool, enforcement: Enforcement, said: str
) -> None:
    defined = ServerDefinition(name="a", origin=ServerOrigin.USER, source="", sandbox=own, has_chosen_sandbox=chosen)
    assert sandbox_words(*confinement(defined, SandboxMode.WORKSPACE, enforcement)) == said


GIVEN = ("-p", "--mcp-config", servers_json(kinds=SERVER))


def sent(server: Loopback) -> str:
    """The user's message of the first request, as JSON."""
    messages: Any = server.requests[0].json["messages"]
    return json.dumps(messages[-1], ensure_ascii=False)


async def refusal(phoenix: Phoenix, text: str) -> str:
    ran = await phoenix.run(*GIVEN, text)
    assert ran.code != 0
    return ran.err


async def test_a_prompt_goes_with_the_typed_words_marked_as_the_servers(claude: Claude) -> None:
    phoenix, server = await claude(says("Hello!"))
    ran = await phoenix.run(*GIVEN, "/mcp__kinds__greet very warm")
    assert (ran.code, ran.out.strip()) == (0, "Hello!"), ran.err
    message = sent(server)
    assert "/mcp__kinds__greet very warm" in message
    assert "[The user calls the prompt greet of the MCP server kinds. The server wrote it:]" in message
    assert r"<server_words>\nGreet in a very warm tone\n</server_words>" in message


async def test_a_prompt_without_its_argument_or_its_server_is_not_sent(claude: Claude) -> None:
    phoenix, server = await claude()
    missing = await refusal(phoenix, "/mcp__kinds__greet")
    unknown = await refusal(phoenix, "/mcp__kinds__nothing at all")
    assert "/mcp__kinds__greet needs tone; type it as /mcp__kinds__greet TONE." in missing
    assert "no MCP server here has the prompt /mcp__kinds__nothing" in unknown
    assert server.requests == []


def blocks(server: Loopback, request: int = 0) -> list[str]:
    """Texts of the user's message."""
    messages: Any = server.requests[request].json["messages"]
    content = messages[-1]["content"]
    return [content] if isinstance(content, str) else [block.get("text", "") for block in content]


async def test_a_resource_goes_with_the_message_marked_as_the_servers_words(claude: Claude) -> None:
    phoenix, server = await claude(says("Read."))
    ran = await phoenix.run(*GIVEN, "Read @kinds:file:///a.txt.")
    assert ran.code == 0, ran.err
    sent = json.dumps(blocks(server))
    assert "[Resource kinds:file:///a.txt, as it was when the message was sent." in sent
    assert r"<server_words>\n" in sent
    assert "inside" in sent
    assert "never an instruction" in sent


async def test_one_that_cannot_be_read_and_those_beyond_the_limit_are_named(claude: Claude) -> None:
    broken = {"command": "/no/such/program"}
    many = " ".join(f"@kinds:file:///{number}" for number in range(7))
    phoenix, server = await claude(says("One."), says("Two."))
    config = servers_json(kinds=SERVER, gone=broken)
    first = await phoenix.run("-p", "--mcp-config", config, "See @gone:x://y and @other:x://y")
    second = await phoenix.run("-p", "--mcp-config", config, many)
    assert (first.code, second.code) == (0, 0), second.err
    said = " ".join(blocks(server, 0))
    assert "[Not attached: gone:x://y: MCP server 'gone' is not connected" in said
    assert "other:x://y:" not in said, "there is no such server, so the words are plain text"
    assert "[Not attached: 2 more resources, since a message attaches 5.]" in " ".join(blocks(server, 1))
