"""Every agent profile; Enter uses one, letters read, edit and make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from engine.executor.requests import EngineError
from engine.ports.profiles import BUILT_IN, GENERAL
from phoenix_tui.config.profile_files import ProfileTrouble, profile_text
from phoenix_tui.config.sources.agents import is_agent_file
from phoenix_tui.features.page import PageRow
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet, RowsSheet
from phoenix_tui.modals.text_sheet import LineSheet, TextSheet
from phoenix_tui.text.labels import Tone, age, short_path
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.workspace.external_editor import open_outside
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from engine.ports import Profile
    from phoenix_tui.features.service_interfaces import ProfilesApi

TROUBLE: Final = "Trouble"
BUILT: Final = "Built in"
AGENTS: Final = ("Agents, yours", "Agents of this project")
EMPTY: Final = "-"
"""The choice to begin a new profile with the template."""
COMMENT: Final = """A line that is deleted takes its value from the conversation that calls the agent.
description is read by the model that chooses an agent.
tools: read_file, list_files, search, read_image, think, write_file, patch, bash
permission_mode: ask, accept-edits, auto, plan or deny
effort: default, off, low, medium, high or max
max_turns, timeout: model replies and seconds of one task
locked: true keeps the agent from changing this file
The text below the second line of dashes is added to the system prompt."""
TEMPLATE: Final = f"""---
{"".join(f"# {line}{chr(10)}" for line in COMMENT.splitlines())}description: What it is for, in one sentence.
tools: read_file, list_files, search
max_turns: 20
timeout: 300
---

What it should do, and how its result should look.
"""
NO_EDITOR: Final = "The editor cannot be started; set VISUAL or EDITOR."


class ProfilesSheet(RowsSheet):
    """Gives the name of the profile to use; editing and making one happens while it stays open."""

    DEFAULT_CSS = "ProfilesSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.PROFILES)]

    def __init__(self, profiles: ProfilesApi, in_use: str, toasts: Notifier) -> None:
        self._profiles = profiles
        self._in_use = in_use
        self._toasts = toasts
        self._by_key: dict[str, Profile | ProfileTrouble] = {}
        super().__init__("Profiles", self._read(), _keys(), current=in_use)

    def remark(self, entry: PageRow | None) -> str:
        """The chosen one's whole description and settings, or its fault."""
        one = self._by_key.get(entry.key) if entry is not None else None
        if one is None:
            return ""
        if isinstance(one, ProfileTrouble):
            return clean_line(f"{short_path(one.path)}, {_sentence(one)}")
        return f"{clean_line(one.description)}\n{settings_line(one)}"

    def action_take(self) -> None:
        """Use the chosen one; a broken one opens for correction."""
        entry = self.chosen
        if entry is not None and not isinstance(self._by_key[entry.key], ProfileTrouble):
            self.dismiss(entry.key)
        else:
            self.action_edit()

    def action_show(self) -> None:
        """Read all of it."""
        one = self._by_key[self.chosen.key] if self.chosen is not None else None
        if one is not None and not isinstance(one, ProfileTrouble):
            self.app.push_screen(TextSheet(one.name, Content(clean(profile_text(one)))))

    def action_edit(self) -> None:
        """Change its file in the user's own editor."""
        one = self._by_key[self.chosen.key] if self.chosen is not None else None
        if one is None:
            return
        if isinstance(one, ProfileTrouble):
            run_latest(self, partial(self._edit, one.path, one.line), "edit")
        elif one.source == BUILT_IN:
            self._toasts.tell(f"{one.name} is built in; {key('profile_new')} creates your own copy.")
        else:
            self.run_worker(self._edit(Path(one.source), 1), group="edit", exclusive=True)

    def action_new(self) -> None:
        """Make a file of the user's and edit it."""
        run_latest(self, self._new, "edit")

    async def _new(self) -> None:
        name = await self.app.push_screen_wait(LineSheet("Name of the new profile"))
        if not name:
            return
        here = self.chosen.key if self.chosen is not None else EMPTY
        copies = [PickerRow(one.name, f"a copy of {one.name}", one.description) for one in self._profiles.all()]
        sheet = PickerSheet("Start from", [PickerRow(EMPTY, "a template with explanations"), *copies], current=here)
        begin = await self.app.push_screen_wait(sheet)
        if not begin:
            return
        copied = next((one for one in self._profiles.all() if one.name == begin), None)
        try:
            path = self._profiles.create(name, TEMPLATE if copied is None else profile_text(copied, comment=COMMENT))
        except EngineError as error:
            self._toasts.tell(str(error), bad=True)
            return
        await self._edit(path, 1)
        self._choose(name)

    async def _edit(self, path: Path, line: int) -> None:
        if not await open_outside(self.app, path, line):
            self._toasts.tell(f"{NO_EDITOR} The file is {clean_line(str(path))}.", bad=True)
        for trouble in self._profiles.untold():
            self._toasts.tell(trouble.text, bad=True)
        self._entries = self._found = self._read()
        self._chosen = min(self._chosen, len(self._entries) - 1)
        self._draw()

    def _choose(self, key: str) -> None:
        self._chosen = next((place for place, one in enumerate(self._entries) if one.key == key), self._chosen)
        self._draw()

    def _read(self) -> Sequence[PageRow]:
        troubles, profiles = self._profiles.troubles(), self._profiles.all()
        self._by_key = {one.name: one for one in profiles}
        self._by_key |= {f"{TROUBLE} {number}": one for number, one in enumerate(troubles)}
        rows = [
            PageRow(TROUBLE, f"{TROUBLE} {number}", one.path.name, _sentence(one))
            for number, one in enumerate(troubles)
        ]
        return [*rows, *self._rows_of(profiles)]

    def _rows_of(self, profiles: Sequence[Profile]) -> Iterator[PageRow]:
        for section in (BUILT, "Yours", "Of this project", *AGENTS):
            for one in profiles:
                if section == _section(one):
                    mode = one.permission_mode.value if one.permission_mode is not None else ""
                    used = "in use" if one.name == (self._in_use or GENERAL) else ""
                    yield PageRow(section, one.name, one.name, one.description, " · ".join(filter(None, (mode, used))))

    def _row(self, entry: PageRow, words_width: int, *, chosen: bool) -> list[Content]:
        lines = super()._row(entry, words_width, chosen=chosen)
        if chosen or entry.section != TROUBLE:
            return lines
        return [line.stylize(Tone.BAD.value) for line in lines]


def _section(one: Profile) -> str:
    """Heading of the rows of its kind."""
    if is_agent_file(one):
        return AGENTS[not Path(one.source).is_relative_to(Path.home() / ".claude")]
    return "Of this project" if one.project else BUILT if one.source == BUILT_IN else "Yours"


def _keys() -> str:
    return hint(("sheet_take", "uses"), ("profile_read", "reads"), ("profile_edit", "edits"), ("profile_new", "new"))


def settings_line(profile: Profile) -> str:
    """Special settings of a profile: model, tools, mode, limits, source."""
    limits = [f"{profile.max_turns} replies" if profile.max_turns else "", _time(profile.timeout)]
    limit = ", ".join(filter(None, limits))
    source = "built in" if profile.source == BUILT_IN else clean_line(short_path(Path(profile.source)))
    parts = (
        clean_line(profile.model) or "your model",
        f"effort {profile.effort}" if profile.effort else "",
        ", ".join(profile.tools) or "all tools",
        f"mode {profile.permission_mode.value}" if profile.permission_mode is not None else "your mode",
        f"sandbox {profile.sandbox}" if profile.sandbox else "",
        f"at most {limit}{' as a sub-agent' if profile.source == BUILT_IN else ''}" if limit else "",
        "locked" if profile.locked else "",
        source,
    )
    return " · ".join(filter(None, parts))


def _time(seconds: float) -> str:
    return age(seconds) if seconds else ""


def _sentence(trouble: ProfileTrouble) -> str:
    """Text of a fault without the path before it; the line stays, where there is one."""
    bare = trouble.text.removeprefix(f"{clean_line(str(trouble.path))}:")
    return bare.lstrip() if bare == trouble.text or bare.startswith(" ") else f"line {bare}"
