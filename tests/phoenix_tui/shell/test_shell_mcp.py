"""/mcp on the screen: rows with states, details, connecting again, ending."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from textual import events

from engine.ports.mcp import ServerState
from phoenix_tui.modals.text_sheet import TextSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_mcp import FakeServers, a_server
from tests.support.shell import Shell


async def listed(shell: Shell) -> None:
    await shell.type("/mcp")
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: shell.is_page("MCP servers"))


async def test_servers_are_listed_with_state_tools_and_cost(open_shell: OpenShell) -> None:
    broken = a_server("notes", ServerState.FAILED, "it ended: \x1b[31mno database")
    async with open_shell(mcp=FakeServers(a_server(), broken, notices=["x.json is not valid JSON."])) as shell:
        await listed(shell)
        await shell.shows("● files")
        assert "2 tools · 1,234 tokens · last call 12 ms" in shell.text
        assert "✗ notes" in shell.text
        assert "it ended: no database" in shell.text.replace("[31m", "")
        assert "/home/me/config.toml: npx -y server-filesystem ." in shell.text
        assert "x.json is not valid JSON." in shell.text


async def test_enter_shows_the_details_and_esc_returns(open_shell: OpenShell) -> None:
    async with open_shell(size=(100, 40), mcp=FakeServers(a_server())) as shell:
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await shell.shows("mcp__files__read")
        for words in ("Instructions, in the words of the server:", "Use with care.", "info: started"):
            assert words in shell.text
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.is_page("MCP servers"))


async def test_r_connects_again_and_x_ends(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server("files", ServerState.FAILED, "gone"))
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("r")
        await shell.shows("files: connected.")
        await shell.pilot.press("x")
        await shell.shows("files has ended; its next use starts it again.")
        assert [done for done in servers.done if done != "settle"] == ["reconnect files", "end files"]


async def test_space_switches_a_server_off_in_this_conversation_and_on_again(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server())
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("space")
        await shell.shows("files is off in this conversation")
        servers.all = [replace(servers.all[0], state=ServerState.OFF, is_on=False)]
        await shell.shows("– files")
        await shell.pilot.press("space")
        await shell.shows("files is on again")


async def test_without_servers_the_sheet_names_the_way_to_one(open_shell: OpenShell) -> None:
    async with open_shell(mcp=FakeServers()) as shell:
        await listed(shell)
        await shell.shows("No MCP servers here. Define them in .mcp.json")
        await shell.pilot.press("enter", "r", "x", "down")
        assert shell.is_page("MCP servers")


async def test_enter_on_a_server_that_wants_a_sign_in_shows_the_host_and_opens_nothing(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server("web", ServerState.NEEDS_AUTH, "it wants a sign-in"))
    async with open_shell(mcp=servers) as shell:
        opened: list[str] = []
        shell.app.open_url = lambda url, **_: opened.append(url)  # type: ignore[method-assign]  # watched
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.shows("Sign in to web at login.example.com")
        assert "https://login.example.com/a?state=s" in shell.text
        assert opened == []
        await shell.pilot.press("o")
        assert opened == ["https://login.example.com/a?state=s"]
        await shell.shows("The browser is asked to open it.")


async def test_a_pasted_address_is_taken_from_a_line_and_from_a_paste(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server("web", ServerState.NEEDS_AUTH))
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.shows("p takes a pasted address")
        shell.top.post_message(events.Paste("http://127.0.0.1/callback?state=s"))
        await shell.shows("It has no code.")
        await shell.pilot.press("p")
        await shell.shows("Address that the browser was sent to")
        await shell.type("x?code=1")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.is_page("MCP servers"))
        await shell.shows("● web")
    assert [done for done in servers.done if done != "settle"][-2:] == ["paste x?code=1", "reconnect web"]


async def test_a_reason_why_there_is_no_sign_in_is_said_in_the_sheet(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server("web", ServerState.NEEDS_AUTH))
    servers.sign_ins.address = "MCP server 'web' gave no address."
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.shows("MCP server 'web' gave no address.")


async def test_servers_are_started_once_no_key_has_come_for_a_moment(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server())
    async with open_shell(mcp=servers) as shell:
        await shell.type("hello")
        await shell.until(lambda: servers.done == ["settle"])


async def test_a_project_gets_secrets_after_a_yes_that_names_them_and_where_they_go(open_shell: OpenShell) -> None:
    waiting = replace(a_server("web", ServerState.FAILED, "it would send"), secrets=("MY_TOKEN",))
    servers = FakeServers(waiting)
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.shows("It wants the values of MY_TOKEN")
        assert "npx -y server-filesystem ." in shell.text
        await shell.pilot.press("n")
        await shell.until(lambda: shell.is_page("MCP servers"))
        assert "allow web" not in servers.done
        await shell.pilot.press("enter")
        await shell.shows("Give them to it?")
        await shell.pilot.press("y")
        await shell.shows("web gets MY_TOKEN until its definition changes.")


async def test_d_switches_a_server_off_for_good_and_on_again(open_shell: OpenShell) -> None:
    servers = FakeServers(a_server())
    async with open_shell(mcp=servers) as shell:
        await listed(shell)
        await shell.pilot.press("d")
        await shell.shows("files is off for good")
        assert "– files" in shell.text
        await shell.pilot.press("d")
        await shell.shows("files is on again.")


async def test_the_window_names_the_share_of_each_server(open_shell: OpenShell) -> None:
    async with open_shell(size=(120, 40), mcp=FakeServers(a_server())) as shell:
        conversation = await shell.say("go")
        conversation.record = replace(conversation.record, message_count=2)
        await shell.type("/context")
        await shell.pilot.press("escape", "enter")
        await shell.shows("MCP servers in each request: files ~1,234")


async def test_a_required_server_that_does_not_connect_is_named_at_the_start(open_shell: OpenShell) -> None:
    slow = replace(a_server("files", ServerState.CONNECTING), is_required=True)
    other = a_server("notes", ServerState.CONNECTING)
    async with open_shell(mcp=FakeServers(slow, other)) as shell:
        await shell.until(lambda: any("is still connecting" in said for said in shell.toasts))
        (said,) = shell.toasts
        assert said == (
            "MCP server 'files', which is required, is still connecting after 30 s. "
            "In /mcp Enter shows its log and r connects again."
        )


async def test_what_a_server_keeps_is_named_with_the_key_that_removes_it(open_shell: OpenShell, tmp_path: Path) -> None:
    async with open_shell(mcp=FakeServers(replace(a_server(), kept=tmp_path))) as shell:
        await listed(shell)
        await shell.shows("keeps what it writes below the home folder · f removes it")
