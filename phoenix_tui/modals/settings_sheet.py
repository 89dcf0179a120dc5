"""Every setting with its value and where it comes from; Enter changes it, Del takes it out of the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.binding import BindingType

from phoenix_tui.features.settings_api import Setting
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.modals.rows_sheet import RowsSheet, SheetRow
from phoenix_tui.text.labels import short_path
from phoenix_tui.workspace.theme_control import ThemeControl

RESET: Final = "-"
"""Prefix of a setting that is to be removed from the file."""


class SettingsSheet(RowsSheet):
    """Gives the name of the setting to change, with a `-` before it to reset it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.SETTINGS)

    def __init__(self, settings: Sequence[Setting], current: str = "") -> None:
        self._by_name = {one.name: one for one in settings}
        entries = [
            SheetRow("", one.name, one.name, one.words or one.value, "" if one.source == "default" else source(one))
            for one in settings
        ]
        super().__init__("Settings", entries, hint("Enter changes", ("setting_reset", "resets")), current=current)

    def remark(self, entry: SheetRow | None) -> str:
        """Meaning and allowed values of the selected setting, and when a change applies."""
        if entry is None:
            return ""
        one = self._by_name[entry.key]
        return f"{one.meaning}: {one.allowed} · {short_path(Path(one.source))} · {when(one)}"

    def action_reset(self) -> None:
        """Reset to the value without the user's file."""
        if self.chosen is not None:
            self.dismiss(f"{RESET}{self.chosen.key}")


def when(setting: Setting) -> str:
    """Time from which a change applies."""
    return "applies at once" if setting.live else "applies from the next start"


def source(setting: Setting) -> str:
    """Source of a value, short: a file by its name, a flag, a variable."""
    return setting.source.rpartition("/")[2]


class ThemeSheet(PickerSheet):
    """Shows each theme while it is under the cursor; Esc brings the old one back."""

    def __init__(self, names: Sequence[str], current: str, colours: ThemeControl) -> None:
        super().__init__("Colours", [PickerRow(name, name) for name in names], current=current)
        self._before = current
        self._colours = colours

    def action_move(self, by: int) -> None:
        """Choose another, and look at it."""
        super().action_move(by)
        self._look()

    def narrow(self, text: str) -> None:
        """Narrow, and look at the first."""
        super().narrow(text)
        self._look()

    def action_close(self) -> None:
        """Restore the former theme."""
        self._colours.choose(self._before)
        self.dismiss(None)

    def _look(self) -> None:
        if self._found:
            self._colours.choose(self._found[self._chosen].key)
