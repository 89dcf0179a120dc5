"""Scenes of sheets: help, settings, colours, notes, statistics, traces, extensions and profiles."""

from __future__ import annotations

from functools import partial
from typing import Final

from phoenix_tui.config.settings import KEYS, in_words
from phoenix_tui.config.trust import find_project
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.statistics_sheet import PAGES, StatisticsSheet, TraceSheet
from phoenix_tui.modals.text_sheet import TextSheet
from screenshots.scenes_profiles import MINE, PROJECTS, written
from tests.snapshots.booth import LARGE, MIDDLE, SMALL, Booth
from tests.snapshots.scenes_list import older
from tests.support.extended_folder import board, extended, write
from tests.support.fake_engine import FakeSettings
from tests.support.fake_notes import notes_below, some_notes
from tests.support.fake_profiles import FakeProfiles
from tests.support.fake_statistics import FakeStatistics, some_statistics
from tests.support.fake_traces import some_traces
from tests.support.shell import Shell
from tests.support.story import DAWN

OWN: Final = {"model": "demo/guide", "notifications": "bell", "max_turns": "40"}


def settings() -> FakeSettings:
    """Every setting there is, three of them by the user."""
    rows = [
        Setting(
            name,
            OWN.get(name, f"{key.default:g}" if isinstance(key.default, float) else str(key.default).lower()),
            "config.toml:2" if name in OWN else "default",
            key.allowed,
            key.meaning,
            ("true", "false") if key.kind is bool else key.choices,
            key.live,
            in_words(name, key.kind(OWN.get(name, key.default))),
        )
        for name, key in KEYS.items()
    ]
    return FakeSettings(rows=rows)


async def sheets(place: Booth) -> None:
    """Palette and help, each whole and searched; the models; settings and one of them changed."""
    older(place)
    async with place.opened(services={"settings": settings()}) as shell:
        for key, name, words, found in (("ctrl+p", "palette", "duck", "1 /"), ("f1", "help", "cut", "cut the word")):
            await shell.press(key, until=lambda: shell.top is not shell.screen)
            await place.take(shell, name, (SMALL, MIDDLE))
            await shell.type(words, shows=found)
            await place.take(shell, f"{name}-found", (SMALL,))
            await shell.press("escape", until=lambda: shell.top is shell.screen)
        for command, name, shows in (
            ("/model", "models", "claude-sonnet"),
            ("/theme", "themes", "phoenix-light"),
            ("/resume", "resume", "container"),
            ("/config", "settings", "max_turns"),
        ):
            await shell.enter(command, until=lambda: shell.top is not shell.screen)
            await shell.shows(shows)
            await place.take(shell, name, (SMALL,) if name in {"themes", "resume"} else (SMALL, MIDDLE))
            if name != "settings":
                await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.enter("notif", shows="Enter applies")
        await place.take(shell, "settings-choices", (SMALL,))


async def colours(place: Booth) -> None:
    """A theme of the user's own, then the message about a mistake in it."""
    older(place)
    (place.home / "dawn.toml").write_text(DAWN, "utf-8")
    async with place.opened(themes_folder=place.home, theme="dawn") as shell:
        await shell.press("ctrl+l")
        await place.take(shell, "own", (SMALL,))
        shell.tell("theme.toml:6: 'you' must be a colour such as \"#6cb2ff\", not 'violet'.", bad=True)
        await shell.until(lambda: "must be a colour" in shell.text)
        await place.take(shell, "mistake")


async def memory(place: Booth) -> None:
    """The list, a deletion with its undo, a note."""
    async with place.opened(services={"notes": notes_below(place.home / "none")}) as shell:
        await shell.type("/memory", "escape", "enter", until=lambda: shell.is_page("Notes"))
        await place.take(shell, "empty", (SMALL,))
    notes = await some_notes(place.home, place.cwd)
    async with place.opened(services={"notes": notes}) as shell:
        await shell.type("/memory", "escape", "enter", until=lambda: shell.is_page("Notes"))
        await place.take(shell, "list")
        await shell.press("enter", until=lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "read", (SMALL,))
        await shell.press("escape")
        await shell.press("x", shows="deleted")
        await place.take(shell, "deleted", (SMALL,))


async def open_statistics(shell: Shell, argument: str = "") -> None:
    await shell.type(f"/stats {argument}".rstrip(), "escape", "enter")
    await shell.until(lambda: isinstance(shell.top, StatisticsSheet) and "reading…" not in shell.text)


def shows(shell: Shell, name: str) -> bool:
    return name in shell.text and "reading…" not in shell.text


async def statistics(place: Booth) -> None:
    """An empty database, then each page."""
    async with place.opened(services={"statistics": FakeStatistics()}) as shell:
        await open_statistics(shell)
        await place.take(shell, "empty", (SMALL,))
    async with place.opened(services={"statistics": some_statistics()}) as shell:
        await open_statistics(shell)
        for place_of_page, name in enumerate(PAGES):
            if place_of_page:
                await shell.press("right", until=partial(shows, shell, f"[{name}]"))
            await place.take(shell, name.lower())


async def statistics_plain(place: Booth) -> None:
    """The heat map without signs beyond ASCII."""
    async with place.opened(services={"statistics": some_statistics()}, plain=True) as shell:
        await open_statistics(shell, "day")
        await place.take(shell, "days", (SMALL,))


async def trace(place: Booth) -> None:
    """The list, the tree at every size, a filter, input and output of a call."""
    async with place.opened() as shell:
        conversation = await shell.say("why does make fail?")
        conversation.answer_with("There is no such rule.")
        place.engine.traces = some_traces(conversation.id)
        await shell.type("/trace", "space", "enter", until=lambda: isinstance(shell.top, PickerSheet))
        await place.take(shell, "runs", (SMALL,))
        await shell.press("enter", until=lambda: isinstance(shell.top, TraceSheet) and "spawn_agents" in shell.text)
        await place.take(shell, "tree")
        await shell.press("slash", *"error", shows="1 / 1")
        await place.take(shell, "filter", (SMALL,))
        await shell.press("enter", "enter", until=lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "span", (SMALL,))


async def open_trust(shell: Shell) -> None:
    await shell.type("/trust", "escape", "enter", until=lambda: shell.is_page("Extensions of this folder"))


async def trust(place: Booth) -> None:
    """The list before and after an answer, the difference of a changed script, a name that does not fit."""
    async with place.opened(services={"trust": board(place.home)}) as shell:
        await open_trust(shell)
        await place.take(shell, "empty", (SMALL,))
    extended(place.cwd)
    async with place.opened(services={"trust": board(place.home)}) as shell:
        await open_trust(shell)
        await place.take(shell, "new", (SMALL, LARGE))
        await shell.press("y", shows="Used from now on")
        await place.take(shell, "used", (SMALL,))
        await shell.press("escape")
        write(place.cwd / "scripts/lint.py", "print('worse')\n")
        write(place.cwd / f".claude/commands/{'very-long-' * 20}name.md", "x")
        await open_trust(shell)
        await place.take(shell, "changed", (SMALL, LARGE))
        await shell.press("s", until=lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "difference", (SMALL,))


async def profiles(place: Booth) -> None:
    """The list, one of the user's, what is wrong with a file, a new one."""
    written(place.cwd / "profiles", MINE)
    written(place.cwd / ".phoenix" / "profiles", {"release": PROJECTS, "review": PROJECTS})
    known = FakeProfiles(place.cwd)
    known.real.trust.answer(find_project(place.cwd), trusted=True)
    async with place.opened(services={"profiles": known}) as shell:
        await shell.type("/profile", "escape", "enter", until=lambda: shell.is_page("Profiles"))
        await place.take(shell, "list")
        await shell.press(*["down"] * 5, shows="› migrations")
        await place.take(shell, "own")
        await shell.press("space", shows="max_turns: 12")
        await place.take(shell, "read", (SMALL,))
        await shell.press("escape", until=lambda: shell.is_page("Profiles"))
        await shell.press("pageup", shows="triage.md, line 3")
        await place.take(shell, "trouble")
        await shell.press("n", shows="Name of the new profile")
        await shell.enter("mine", shows="a template with explanations")
        await place.take(shell, "new", (SMALL,))
