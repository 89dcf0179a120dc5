"""/stats: pages, ranges, an empty database, failures and hostile names."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from engine.records.runs import Statistics, StatisticsGroup
from phoenix_tui.modals.statistics_sheet import PAGES, StatisticsSheet
from phoenix_tui.text.statistics_text import EMPTY
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_statistics import FakeStatistics, group, some_statistics
from tests.support.shell import Shell

SMALL, LARGE = (80, 24), (200, 60)


async def opened(shell: Shell, argument: str = "") -> None:
    await shell.type(f"/stats {argument}".rstrip())
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: isinstance(shell.top, StatisticsSheet) and "reading…" not in shell.text)


def shows(shell: Shell, *words: str) -> bool:
    return all(word in shell.text for word in words) and "reading…" not in shell.text


async def test_pages_follow_each_other_and_each_has_its_rows(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=some_statistics()) as shell:
        await opened(shell)
        expected = ("replies", "2026-", "anthropic/claude-opus-4-8", "/srv/relay", "Let the relay", "bash", "explorer")
        for place, (name, words) in enumerate(zip(PAGES, expected, strict=True)):
            if place:
                await shell.pilot.press("right")
            await shell.until(partial(shows, shell, f"[{name}]", words))
        await shell.pilot.press("right")
        await shell.until(lambda: "[Overview]" in shell.text)
        await shell.pilot.press("left")
        await shell.until(lambda: "[Agents]" in shell.text)


async def test_the_range_goes_round_and_is_asked_for(open_shell: OpenShell) -> None:
    sums = some_statistics()
    async with open_shell(size=SMALL, statistics=sums) as shell:
        await opened(shell)
        assert "[30 d]" in shell.text
        for name in ("[year]", "[all]", "[7 d]", "[30 d]"):
            await shell.pilot.press("r")
            await shell.until(partial(shows, shell, name))
        thirty, year, everything, week = [query.since for query in sums.asked]
        assert everything == 0 < year < thirty < week  # the fourth range was read before


async def test_an_empty_database_says_so_on_every_page(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=FakeStatistics()) as shell:
        await opened(shell)
        for name in PAGES:
            await shell.until(partial(shows, shell, f"[{name}]", EMPTY))
            await shell.pilot.press("right")


async def test_a_page_can_be_named_and_escape_closes(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=some_statistics()) as shell:
        await opened(shell, "tool")
        assert "[Tools]" in shell.text
        await shell.pilot.press("escape")
        await shell.until(lambda: not isinstance(shell.top, StatisticsSheet))


async def test_a_database_that_cannot_be_read_is_named_in_the_sheet(open_shell: OpenShell) -> None:
    async with open_shell(size=SMALL, statistics=FakeStatistics(problem="The disk does not answer.")) as shell:
        await opened(shell)
        assert "The disk does not answer." in shell.text


async def test_names_with_control_characters_and_very_wide_ones_keep_the_columns(open_shell: OpenShell) -> None:
    names = ("\x1b[2J\x1b]0;title\x07evil", "長" * 500, "x" * 5_000, "\u202eright to left", "a\nb\tc")
    rows = tuple(group(name, 10, 0.5) for name in names)
    groups = {StatisticsGroup.MODEL: rows, StatisticsGroup.CONVERSATION: rows, StatisticsGroup.PURPOSE: rows}
    answer = Statistics(group("", 50, 2.5), groups)
    for size in (SMALL, LARGE, (20, 10)):
        async with open_shell(size=size, statistics=FakeStatistics(answer)) as shell:
            await opened(shell, "model")
            assert "\x1b" not in shell.text
            assert "\x07" not in shell.text
            if size != (20, 10):
                assert shell.text.count("$0.50") == len(names)


async def test_long_lists_scroll_and_say_how_many_rows_are_below(open_shell: OpenShell) -> None:
    rows = tuple(group(f"model-{number}", 10, 0.5) for number in range(60))
    answer = Statistics(group("", 600, 30.0), {StatisticsGroup.MODEL: rows})
    async with open_shell(size=SMALL, statistics=FakeStatistics(answer)) as shell:
        await opened(shell, "model")
        assert "more rows below" in shell.text
        assert "model-59" not in shell.text
        for _ in range(6):
            await shell.pilot.press("pagedown")
        await shell.until(lambda: "model-59" in shell.text and "more rows below" not in shell.text)


async def test_an_unknown_price_and_estimates_are_marked_and_said(open_shell: OpenShell) -> None:
    total = replace(group("", 10, None), estimated=2, known_cost_usd=1.5)
    answer = Statistics(total, {StatisticsGroup.MODEL: (replace(group("m", 4, 1.5), estimated=1),)})
    async with open_shell(size=LARGE, statistics=FakeStatistics(answer)) as shell:
        await opened(shell, "model")
        assert "$?: the price of 1 call is unknown; the others cost $1.50 together." in shell.text
        assert "~: includes 2 calls that ended before the server reported all tokens." in shell.text
        assert "~$1.50" in shell.text
        assert "~4.0k" in shell.text
