"""Scenes of the sheets with tabs: each group with nothing in it, and with something."""

from __future__ import annotations

from functools import partial
from typing import Final

from phoenix_tui.features.tabs import tabs_of
from phoenix_tui.modals.tabs import TabRow
from tests.snapshots.booth import ALL, SMALL, Booth
from tests.support.extended_folder import board
from tests.support.fake_mcp import FakeServers, a_server
from tests.support.fake_statistics import some_statistics
from tests.support.shell import Shell
from tools.displays import TodoItem, TodoList, TodoStatus

TINY: Final = (60, 20)
SIZES: Final = (TINY, *ALL)


def shows(shell: Shell, title: str) -> bool:
    return any(row.tabs.titles[row.tabs.place] == title for row in shell.top.query(TabRow)) and (
        f"[{title}" in shell.text and "reading…" not in shell.text
    )


async def each_tab(place: Booth, shell: Shell, group: str, named: str = "") -> None:
    """Open a group, and take its first tab at every size and the others at one."""
    shell.screen.action_command(f"{group} {tabs_of(group)[0].name}" if group == tabs_of(group)[0].name else group)
    for at, tab in enumerate(tabs_of(group)):
        if at:
            await shell.press("tab")
        await shell.until(partial(shows, shell, tab.tab))
        await place.take(shell, f"{named}{tab.name}", (SMALL,) if at else SIZES)


async def others(place: Booth, group: str) -> None:
    """The tabs of another group in a new conversation."""
    services = {"statistics": some_statistics(), "trust": board(place.home), "mcp": FakeServers(a_server())}
    async with place.opened(services=services) as shell:
        await each_tab(place, shell, group)


async def plan(place: Booth) -> None:
    """The tabs of `/plan` in a new conversation, then with a list."""
    async with place.opened() as shell:
        await each_tab(place, shell, "plan", "empty-")
        await shell.press("escape", until=lambda: shell.composer.has_focus)
        conversation = await shell.say("go on")
        conversation.answer_with("Done.")
        conversation.set_todos(TodoList((TodoItem("read the code", TodoStatus.COMPLETED), TodoItem("run the tests"))))
        shell.screen.action_command("todo")
        await shell.until(partial(shows, shell, "Todo list"))
        await place.take(shell, "todo-list", SIZES)


async def permissions(place: Booth) -> None:
    """The tabs of `/permissions`, then with hosts."""
    async with place.opened() as shell:
        await each_tab(place, shell, "permissions")
        await shell.press("escape", until=lambda: shell.composer.has_focus)
        await shell.command("/network pypi.org")
        await shell.command("/network deny *.example.com")
        shell.screen.action_command("network")
        await shell.until(partial(shows, shell, "Network"))
        await place.take(shell, "hosts", SIZES)


extensions = partial(others, group="extensions")
cost = partial(others, group="cost")
