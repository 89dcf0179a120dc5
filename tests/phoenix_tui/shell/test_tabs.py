"""Sheets with tabs: each tab of each group, by keys, by its own command and by the name behind the group's."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from textual import events

from phoenix_tui.features.catalogue import BY_NAME, REGISTRY
from phoenix_tui.features.tabs import find_tab, tabs_of
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.tabs import TabRow
from phoenix_tui.modals.text_sheet import ConfirmSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_statistics import some_statistics
from tests.support.shell import Shell

GROUPS: Final = {one.shown_in or one.name for one in REGISTRY if one.tab}
TABS: Final = [(group, tab.name, place) for group in sorted(GROUPS) for place, tab in enumerate(tabs_of(group))]


def lit(shell: Shell) -> str:
    """Title of the tab in use; empty where no sheet with tabs has the keys."""
    rows = list(shell.top.query(TabRow))
    return rows[0].tabs.names[rows[0].tabs.place] if rows else ""


def shows(shell: Shell, title: str) -> bool:
    return lit(shell).startswith(title) and f"[{lit(shell)}]" in shell.text


def test_the_groups_are_those_of_the_page_and_every_tab_has_a_command_in_both_front_ends() -> None:
    assert {"plan", "permissions", "extensions", "cost"} == GROUPS
    assert all(not BY_NAME[tab].only for _, tab, _ in TABS)
    assert {find_tab(one.name, "") for one in REGISTRY if one.tab and one.shown_in} == {
        (group, tab) for group, tab, _ in TABS if tab != group
    }


def test_an_argument_that_names_no_tab_is_for_the_command_itself() -> None:
    assert find_tab("cost", "") == ("cost", "")
    assert find_tab("cost", "Stats") == ("cost", "stats")
    assert find_tab("plan", "todos") == ("plan", "todo")
    assert find_tab("cost", "runs") is find_tab("todo", "add x") is find_tab("stats", "day") is None
    assert find_tab("help", "") is find_tab("approvals", "") is find_tab("nothing", "") is None


@pytest.mark.parametrize("group", sorted(GROUPS))
async def test_each_tab_opens_by_its_name_and_shows_a_sheet(open_shell: OpenShell, group: str) -> None:
    async with open_shell(size=(80, 24), statistics=some_statistics()) as shell:
        for tab in tabs_of(group):
            for line in {f"{group} {tab.name}", tab.name} - {group}:
                shell.screen.action_command(line)
                await shell.until(partial(shows, shell, tab.tab))
                assert not shell.toasts
                await shell.press("escape", until=lambda: not isinstance(shell.top, Sheet))


@pytest.mark.parametrize("group", sorted(GROUPS))
async def test_tab_goes_round_and_a_command_begins_at_the_first(open_shell: OpenShell, group: str) -> None:
    titles = [one.tab for one in tabs_of(group)]
    async with open_shell(size=(80, 24), statistics=some_statistics()) as shell:
        shell.screen.action_command(group)
        await shell.until(partial(shows, shell, titles[0]))
        for title in (*titles[1:], titles[0]):
            await shell.press("tab", until=partial(shows, shell, title))
        for title in (*titles[:0:-1], titles[0]):
            await shell.press("ctrl+pageup", until=partial(shows, shell, title))
        await shell.press("shift+tab", until=partial(shows, shell, titles[-1]))
        await shell.press("escape", until=lambda: not isinstance(shell.top, Sheet))
        shell.screen.action_command(group)
        await shell.until(partial(shows, shell, titles[0]))


async def test_keys_typed_at_once_are_done_in_their_order(open_shell: OpenShell) -> None:
    async with open_shell(size=(80, 24), statistics=some_statistics()) as shell:
        shell.screen.action_command("cost")
        await shell.until(partial(shows, shell, "This conversation"))
        app: Any = shell.app
        for key in ("tab", "right", "right", "tab", "tab", "tab"):
            app.post_message(events.Key(key, "\t" if key == "tab" else None))
        await shell.until(partial(shows, shell, "Statistics"))
        await shell.shows("[Models]")


async def test_a_click_on_a_title_shows_its_tab_and_the_row_stays_where_it_is(open_shell: OpenShell) -> None:
    async with open_shell(size=(80, 24), statistics=some_statistics()) as shell:
        shell.screen.action_command("cost stats")
        await shell.until(partial(shows, shell, "Statistics"))
        await shell.shows("[Overview]")
        row = next(at for at, line in enumerate(shell.text.splitlines()) if "[Statistics]" in line)
        await shell.pilot.click(offset=(4, row))
        await shell.until(partial(shows, shell, "This conversation"))
        assert "[This conversation]" in shell.text.splitlines()[row]


async def test_a_narrow_screen_keeps_the_title_in_use(open_shell: OpenShell) -> None:
    async with open_shell(size=(40, 20)) as shell:
        shell.screen.action_command("extensions trust")
        await shell.until(partial(shows, shell, "Trust"))
        await shell.press("tab", until=partial(shows, shell, "Skills"))


async def test_a_sheet_that_a_tab_opened_leads_back_to_the_tab(open_shell: OpenShell) -> None:
    async with open_shell(size=(80, 24)) as shell:
        shell.screen.action_command("permissions sandbox")
        await shell.until(partial(shows, shell, "Sandbox"))
        await shell.press("up", "enter", until=lambda: isinstance(shell.top, ConfirmSheet))
        assert not shell.top.query(TabRow)
        await shell.press("n", until=partial(shows, shell, "Sandbox"))
        await shell.press("tab", until=partial(shows, shell, "Network"))
