"""Settings, changed or reset in the user's file; the checks of this machine, and files for debugging."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from engine.executor.requests import EngineError
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.text.statistics_text import size_in_words
from tools.clean import clean, clean_line

EVERY: Final = "all"
"""Argument of /config for the list of all settings."""


class SettingOrder(Struct, frozen=True):
    """A setting to change, or to take out of the user's file."""

    name: str
    reset: bool = False


class SettingsAsker(Protocol):
    """A front end's side of the settings."""

    async def which_setting(self, settings: Sequence[Setting], before: str, *, every: bool) -> SettingOrder | None:
        """Choose one, with the one changed last selected (empty: none yet), of the usual ones or of `every`. None ends
        the choosing.
        """
        ...

    async def new_value(self, setting: Setting) -> str | None:
        """Ask for another value; None keeps the present one."""
        ...

    def apply(self, setting: Setting) -> None:
        """Put a live setting into force."""
        ...

    def words(self, setting: Setting) -> str:
        """Value of a setting as the front end reports it."""
        ...


class SettingsCommands:
    """Changes of the settings in the user's file. Every method raises EngineError, which names file and line."""

    def __init__(self, front: FrontEnd, asker: SettingsAsker) -> None:
        self._front = front
        self._asker = asker
        self._settings = front.services.settings

    async def config(self, argument: str) -> None:
        """Carry out `/config`, `/config all`, `/config NAME` or `/config NAME VALUE`."""
        name, _, value = argument.partition(" ")
        if name in {"", EVERY}:
            await self._choose(every=name == EVERY)
            return
        if not value.strip():
            now = await self.change(name)
        else:
            now = self.keep(name, value.strip()) if self._require(name) is not None else None
        if now is not None:
            self._front.tell(self._asker.words(now))

    async def change(self, name: str) -> Setting | None:
        """Ask for another value and keep it; returns the setting as it is then, None when there is none to report."""
        found = self._require(name)
        value = await self._asker.new_value(found) if found is not None else None
        return self.keep(name, value) if value is not None else None

    def keep(self, name: str, value: str) -> Setting | None:
        """Store a value in the user's file; a setting that overrides that file is named, and gives None."""
        self._settings.save(name, value)
        now = self._apply(name)
        if now is not None and now.value != value:
            text = f"Saved, but {now.source} overrides it: {name} stays {now.value or 'not set'}."
            self._front.tell(text, bad=True)
            return None
        return now

    async def _choose(self, *, every: bool) -> None:
        before = ""
        while order := await self._asker.which_setting(self._settings.all(), before, every=every):
            before = order.name
            try:
                if order.reset:
                    self._settings.reset(order.name)
                    now = self._apply(order.name)
                else:
                    now = await self.change(order.name)
            except EngineError as error:
                self._front.tell(str(error), bad=True)
            else:
                if now is not None:
                    self._front.confirm_change(self._asker.words(now))

    def _require(self, name: str) -> Setting | None:
        found = self._find(name)
        if found is None:
            self._front.tell(f"There is no setting {name}. /config all lists them.", bad=True)
        return found

    def _find(self, name: str) -> Setting | None:
        return next((one for one in self._settings.all() if one.name == name), None)

    def _apply(self, name: str) -> Setting | None:
        now = self._find(name)
        if now is not None and now.live:
            self._asker.apply(now)
        return now


UNAVAILABLE: Final = "Nothing is recorded for debugging here."
NONE_YET: Final = "Nothing was recorded yet; the setting diagnostics says what is."
HANG: Final = 2


async def debug(front: FrontEnd, name: str) -> None:
    """Show a file of the logs, or ask for one.

    Raises:
        EngineError: there are none, there is no such file, or it cannot be read.
    """
    diagnostics = front.services.diagnostics
    if diagnostics is None:
        raise EngineError(UNAVAILABLE)
    try:
        found = await asyncio.to_thread(diagnostics.files)
        if not found:
            front.tell(NONE_YET)
            return
        changed = [f"{datetime.fromtimestamp(one.changed).astimezone():%Y-%m-%d %H:%M}" for one in found]
        options = [
            Option(one.name, clean_line(one.name), (size_in_words(one.size), when))
            for one, when in zip(found, changed, strict=True)
        ]
        wanted = name.strip() or await front.pick("Files for debugging, newest first", options)
        if wanted:
            text = await asyncio.to_thread(diagnostics.end_of, wanted)
            front.read(clean_line(wanted), clean(text) or "It is empty.", hang=HANG)
    except FileNotFoundError as error:
        raise EngineError(f"There is no file {clean_line(name)} here; /debug lists all.") from error
    except OSError as error:
        raise EngineError(f"The file cannot be read: {error.strerror}.") from error


COLUMN: Final = 20
"""Cells before a finding of the doctor (`ServiceOpener._doctor`)."""


async def doctor(front: FrontEnd, _: str) -> None:
    """Show the working and broken parts of this machine."""
    front.read("Doctor", await front.services.system.doctor(), hang=COLUMN)
