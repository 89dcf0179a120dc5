"""The tab of hosts: those of rules are added, denied, removed and restored; those of the setting are shown."""

from __future__ import annotations

from engine.permissions.place import project_of
from phoenix_tui.modals.text_sheet import LineSheet
from tests.support.shell import Shell


async def add(shell: Shell, text: str, shows: str) -> None:
    await shell.press("n", until=lambda: isinstance(shell.top, LineSheet))
    await shell.enter(text, shows=shows)


def rules(shell: Shell) -> set[tuple[str, str]]:
    return {(one.text, one.project) for one in shell.engine.rules.all(shell.active.folder)}


async def test_hosts_are_added_denied_removed_and_restored(shell: Shell) -> None:
    shell.screen.action_command("network")
    await shell.shows("Hosts that sandboxed commands may reach without a question. n adds one")
    await add(shell, "pypi.org", "› pypi.org")
    await add(shell, "deny *.example.com", "deny *.example.com")
    await add(shell, "*.com", "`*.com` means hosts of anybody")
    here = str(project_of(shell.active.folder))
    assert rules(shell) == {("net(pypi.org)", here), ("deny net(*.example.com)", here)}
    await shell.press("home", "d", until=lambda: len(rules(shell)) == 1)
    await shell.press("u", until=lambda: len(rules(shell)) == 2)


async def test_a_host_is_added_by_the_command_and_one_that_is_none_is_refused(shell: Shell) -> None:
    await shell.command("/network crates.io")
    assert {text for text, _ in rules(shell)} == {"net(crates.io)"}
    await shell.command("/network *.com")
    await shell.until(lambda: any("means hosts of anybody" in one for one in shell.toasts))
