"""Palette, help, settings, models, the user's own colours, a broken file."""

from __future__ import annotations

from typing import Final

from phoenix_tui.config.settings import KEYS, in_words
from phoenix_tui.features.service_interfaces import Setting
from tests.snapshots.booth import MIDDLE, SMALL, Booth
from tests.snapshots.scenes_list import older
from tests.support.fake_engine import FakeSettings
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
            await shell.pilot.press(key)
            await shell.until(lambda: shell.top is not shell.screen)
            await place.take(shell, name, (SMALL, MIDDLE))
            await shell.type(words)
            await shell.shows(found)
            await place.take(shell, f"{name}-found", (SMALL,))
            await shell.pilot.press("escape")
            await shell.until(lambda: shell.top is shell.screen)
        for command, name, shows in (
            ("/model", "models", "claude-sonnet"),
            ("/theme", "themes", "phoenix-light"),
            ("/resume", "resume", "container"),
            ("/config", "settings", "max_turns"),
        ):
            await shell.type(command)
            await shell.pilot.press("enter")
            await shell.until(lambda: shell.top is not shell.screen)
            await shell.shows(shows)
            await place.take(shell, name, (SMALL,) if name in {"themes", "resume"} else (SMALL, MIDDLE))
            if name != "settings":
                await shell.pilot.press("escape")
                await shell.until(lambda: shell.top is shell.screen)
        await shell.type("notif")
        await shell.pilot.press("enter")
        await shell.until(lambda: "Enter applies" in shell.text)
        await place.take(shell, "settings-choices", (SMALL,))


async def colours(place: Booth) -> None:
    """A theme of the user's own, then the message about a mistake in it."""
    older(place)
    (place.home / "dawn.toml").write_text(DAWN, "utf-8")
    async with place.opened(themes_folder=place.home, theme="dawn") as shell:
        await shell.pilot.press("ctrl+l")
        await place.take(shell, "own", (SMALL,))
        shell.tell("theme.toml:6: 'you' must be a colour such as \"#6cb2ff\", not 'violet'.", bad=True)
        await shell.until(lambda: "must be a colour" in shell.text)
        await place.take(shell, "mistake")


SCENES: Final = {"sheets": sheets, "colours": colours}
