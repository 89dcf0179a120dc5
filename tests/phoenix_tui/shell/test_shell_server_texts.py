"""Prompts and resources of MCP servers in the popup of the composer."""

from __future__ import annotations

from engine.ports.mcp import ServerResource
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_invocables import NoInvocables
from tests.support.fake_mcp import GREET, PLAN, FakeServers, FakeTexts
from tests.support.shell import Shell

NOTES = ServerResource("notes://all", "Notes", "Everything that was noted.")
DAYS = ServerResource("notes://{day}", "Days", is_template=True)
SPOILT = ServerResource("notes://\x1b[31mred", "Red")


def servers(*resources: ServerResource) -> FakeServers:
    return FakeServers(texts=FakeTexts(GREET, PLAN, resources=resources))


async def test_prompts_are_offered_behind_the_slash_with_their_arguments(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__")
        await shell.shows("/mcp__files__greet TONE")
        assert "Greets. · prompt of a server" in shell.text
        assert "/mcp__files__plan" in shell.text


async def test_values_are_offered_for_the_argument_and_enter_sends_what_is_written(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__files__greet wa")
        await shell.shows("wary")
        await shell.pilot.press("tab")
        assert shell.composer.text == "/mcp__files__greet warm "
        await shell.pilot.press("backspace", "enter")
        await shell.until(lambda: sent(shell) == ["/mcp__files__greet warm"])


async def test_a_prompt_without_arguments_is_sent_by_its_row(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(), invocables=NoInvocables()) as shell:
        await shell.type("/mcp__files__pl")
        await shell.shows("/mcp__files__plan")
        await shell.pilot.press("enter")
        await shell.until(lambda: sent(shell) == ["/mcp__files__plan"])


async def test_a_server_and_then_its_resources_are_offered_behind_the_at_sign(open_shell: OpenShell) -> None:
    async with open_shell(mcp=servers(NOTES, DAYS, SPOILT), invocables=NoInvocables()) as shell:
        await shell.type("see @fil")
        await shell.shows("@files:")
        await shell.pilot.press("tab")
        await shell.shows("Everything that was noted.")
        assert shell.composer.text == "see @files:"
        assert "@files:notes://{day}" in shell.text
        assert "31mred" not in shell.text, "its address would insert more than its row shows"
        await shell.type("all")
        await shell.until(lambda: "{day}" not in shell.text)
        await shell.pilot.press("tab")
        assert shell.composer.text == "see @files:notes://all "


async def test_a_list_that_cannot_be_had_is_said_in_the_popup(open_shell: OpenShell) -> None:
    mcp = servers()
    mcp.texts.trouble = "MCP server 'files' is not connected: gone."
    async with open_shell(mcp=mcp, invocables=NoInvocables()) as shell:
        await shell.type("@files:")
        await shell.shows("MCP server 'files' is not connected: gone.")


def sent(shell: Shell) -> list[str]:
    """Messages that were sent, in order."""
    return [said[0] for said in shell.conversation.said] if shell.in_view is not None else []
