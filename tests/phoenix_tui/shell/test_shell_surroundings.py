"""Files of colours, keys and settings count as soon as they are saved; broken ones are named and change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.content import Content

from engine.machine.states import Idle
from phoenix_tui.modals.rows_sheet import HelpSheet, PickerSheet, RowsSheet, SettingsSheet
from tests.support.fake_engine import FakeEngine

DAWN = 'base = "phoenix-light"\nyou = "#123456"\n'


async def test_a_saved_theme_changes_the_screen_and_a_broken_one_leaves_it(open_shell: Any, tmp_path: Path) -> None:
    theme = tmp_path / "dawn.toml"
    theme.write_text(DAWN)
    async with open_shell((120, 40), themes_folder=tmp_path, theme="dawn") as shell:
        app = shell.app
        assert (app.theme, app.current_theme.accent) == ("dawn", "#123456")
        theme.write_text(DAWN.replace("#123456", "#654321"))
        await shell.until(lambda: app.current_theme.accent == "#654321")
        theme.write_text(DAWN.replace("#123456", "red"))
        await shell.until(lambda: any("dawn.toml:2" in toast for toast in shell.toasts))
        assert app.current_theme.accent == "#654321"
        assert "dawn" in shell.ctx.environment.colours.names()


async def test_a_well_known_theme_is_there_from_the_first_frame_and_is_previewed(open_shell: Any) -> None:
    async with open_shell((120, 40), theme="nord") as shell:
        assert (shell.app.theme, shell.app.current_theme.background) == ("nord", "#2e3440")
        await shell.type("/theme")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await shell.type("dracula")
        await shell.until(lambda: shell.app.current_theme.background == "#282a36")
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.app.theme == "nord")


async def test_a_file_replaces_the_well_known_theme_of_its_name(open_shell: Any, tmp_path: Path) -> None:
    (tmp_path / "nord.toml").write_text('base = "dracula"\nyou = "#123456"\n')
    async with open_shell((120, 40), themes_folder=tmp_path, theme="nord") as shell:
        assert (shell.app.current_theme.accent, shell.app.current_theme.background) == ("#123456", "#282a36")
        names = shell.ctx.environment.colours.names()
        assert (names[0], names.count("nord")) == ("nord", 1)
        assert (shell.app.current_theme.accent, shell.app.theme) == ("#123456", "nord")


async def test_a_saved_keymap_counts_at_once_and_a_broken_one_leaves_the_keys(open_shell: Any, tmp_path: Path) -> None:
    keymap = tmp_path / "keymap.toml"
    async with open_shell((120, 40)) as shell:
        keymap.write_text('help = "f9"\n')
        await shell.until(lambda: shell.ctx.keymap)
        await shell.pilot.press("f9")
        await shell.until(lambda: isinstance(shell.top, HelpSheet))
        await shell.pilot.press("escape")
        keymap.write_text('help = "ctrl+q"\n')
        await shell.until(lambda: any("keymap.toml:1" in toast for toast in shell.toasts))
        await shell.pilot.press("f9")
        await shell.until(lambda: isinstance(shell.top, HelpSheet))


async def test_a_theme_that_does_not_exist_is_said_with_those_that_do(open_shell: Any) -> None:
    async with open_shell(theme="solarized") as shell:
        await shell.until(lambda: any("There is no theme solarized. The themes are" in toast for toast in shell.toasts))


async def test_a_setting_is_changed_in_place_and_kept(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.type("/config")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, SettingsSheet))
        assert "config.toml:1" in shell.text
        await shell.type("mouse")
        await shell.until(lambda: "the mouse: true or false" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: ("mouse", "false") in shell.settings)
        await shell.until(lambda: isinstance(shell.top, SettingsSheet) and "mouse          false" in shell.text)
        assert shell.ctx.environment.mouse is False
        await shell.pilot.press("delete")
        await shell.until(lambda: ("mouse", "") in shell.settings)


async def test_a_setting_that_is_changed_by_its_name_is_told(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.type("/config mouse")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts == ["mouse: false, applies at once."])
        await shell.type("/config mouse true")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.settings[-1] == ("mouse", "true"))
        await shell.until(lambda: shell.toasts[-1] == "mouse: true, applies at once.")


async def test_a_setting_with_choices_offers_them_and_esc_keeps_it(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        shell.screen.action_command("config")
        await shell.until(lambda: isinstance(shell.top, SettingsSheet))
        await shell.type("notif")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await shell.pilot.press("escape")
        await shell.until(lambda: isinstance(shell.top, SettingsSheet))
        assert shell.settings == []


async def test_a_theme_is_seen_while_it_is_chosen_and_esc_brings_the_old_one_back(open_shell: Any) -> None:
    async with open_shell((120, 40), theme="phoenix-dark") as shell:
        shell.screen.action_command("theme")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await shell.pilot.press("down")
        await shell.until(lambda: shell.app.theme != "phoenix-dark")
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.app.theme == "phoenix-dark")
        assert shell.settings == []


async def test_the_palette_finds_conversations_settings_and_keys_and_remembers(
    open_shell: Any, engine: FakeEngine
) -> None:
    engine.seed("retry loop", messages=2)
    async with open_shell((120, 40)) as shell:
        await shell.pilot.press("ctrl+p")
        await shell.until(lambda: isinstance(shell.top, RowsSheet))
        await shell.type("retrloop")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view is not None)
        assert shell.conversation.record.title == "retry loop"
        await shell.pilot.press("ctrl+p")
        await shell.until(lambda: "Recent" in shell.text)
        await shell.type("next perm")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.conversation.record.permission_mode.value == "accept-edits")
        assert isinstance(shell.conversation.state, Idle)


async def test_nothing_found_says_so_and_help_fits_a_narrow_screen(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.top, HelpSheet))
        rows = shell.text.split("\n")
        assert len(rows) == 20
        wrapped = next(place for place, row in enumerate(rows) if "copy the selection" in row)
        assert rows[wrapped + 1].startswith(" " * 20), "a meaning that goes on is not under itself"
        await shell.type("zzzz")
        await shell.until(lambda: "No matches" in shell.text)
        await shell.pilot.press("question_mark", "f1")
        await shell.until(lambda: shell.top is shell.screen)


async def test_text_that_goes_on_does_so_below_itself_on_a_narrow_screen(open_shell: Any) -> None:
    async with open_shell((40, 20)) as shell:
        shell.ctx.sheets.read("Doctor", Content(f"ok   disk    {'word ' * 12}"), 13)
        await shell.until(lambda: "Doctor" in shell.text)
        rows = shell.text.split("\n")
        first = next(place for place, row in enumerate(rows) if "disk" in row)
        assert rows[first + 1].startswith(" " * 14 + "word")
