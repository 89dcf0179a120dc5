"""Agent profiles: the one that new conversations begin with, and the page on which they are used, read and edited."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import Idle
from engine.ports.profiles import BUILT_IN, GENERAL, narrower_mode, narrower_sandbox
from engine.records import PermissionMode
from phoenix_tui.config.profile_files import ProfileTrouble, profile_text
from phoenix_tui.config.sources.agents import is_agent_file
from phoenix_tui.features.front_end import TAKE, FrontEnd, ListPage, Option, PageAction, PageRow
from phoenix_tui.features.service_interfaces import ProfileChoice, ProfilesApi
from phoenix_tui.lifecycle.launch import Launch
from phoenix_tui.text.labels import age, short_path
from tools.clean import clean, clean_line

if TYPE_CHECKING:
    from engine.ports import Profile


class ProfileUse(Struct, frozen=True):
    """Options of conversations from now on."""

    launch: Launch
    model: str = ""
    """Empty: the model in use stays."""
    mode: PermissionMode | None = None
    """Permission mode; None: the present one stays."""
    special: str = ""
    """Settings of the profile, in words; empty when it sets no model, effort, mode or sandbox."""


async def use_profile(front: FrontEnd, name: str) -> None:
    """Begin new conversations with this profile, and the one in view if it is empty.

    Raises:
        EngineError: there is no such profile, or its file is wrong.
    """
    use = use_of(front.launch, front.services.profiles, name, front.mode)
    launch = replace(use.launch, permission_mode=use.mode or front.launch.permission_mode)
    shown = front.conversation
    begun = shown is not None and bool(shown.record.message_count or not isinstance(shown.state, Idle))
    front.prefer(launch=launch, model=use.model, mode=use.mode)
    if shown is not None and not begun:
        await front.begin_anew()
    begins = "New conversations start" if begun else "This conversation starts"
    stays = " This one is unchanged." if begun else ""
    front.tell(f"{begins} as {name}{f': {use.special}' if use.special else ''}.{stays}")


def use_of(launch: Launch, profiles: ProfilesApi, name: str, mode_now: PermissionMode) -> ProfileUse:
    """Begin as `name`, whose mode and sandbox only narrow; settings of the profile before it are reset.

    Raises:
        EngineError: there is no such profile, or its file is wrong.
    """
    choice, before = profiles.choose(name), _before(launch, profiles)
    model, mode = choice.model, choice.mode and narrower_mode(mode_now, choice.mode)
    sandbox, required = launch.sandbox, launch.sandbox_required
    if before is not None and before.model:
        model = model or profiles.own_model or launch.model
    if before is not None and before.mode is not None:
        mode = choice.mode or profiles.own_mode
    if before is not None and before.sandbox is not None:
        sandbox, required = profiles.own_sandbox
    if choice.sandbox is not None:
        sandbox, required = narrower_sandbox(sandbox, choice.sandbox), True
    effort = choice.effort or (profiles.own_effort if before is not None and before.effort else launch.effort)
    words = (
        f"model {clean_line(choice.model)}" if choice.model else "",
        f"effort {effort.value}" if choice.effort is not None else "",
        f"mode {mode.value}" if mode is not None and choice.mode is not None else "",
        f"sandbox {sandbox.value}" if choice.sandbox is not None else "",
    )
    return ProfileUse(
        replace(
            launch,
            profile=choice.profile,
            append_system_prompt=choice.append_system_prompt,
            sandbox=sandbox,
            sandbox_required=required,
            effort=effort,
        ),
        model,
        mode,
        ", ".join(filter(None, words)),
    )


def _before(launch: Launch, profiles: ProfilesApi) -> ProfileChoice | None:
    """Choice of the current profile; None without one, or when it is gone."""
    try:
        return profiles.choose(launch.profile) if launch.profile else None
    except EngineError:
        return None


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


async def show_profiles(front: FrontEnd, name: str) -> None:
    """Use the profile that is named, or show all. Raises EngineError."""
    if name:
        await use_profile(front, name)
    else:
        await front.show(ProfilesPage(front).read)


class ProfilesPage:
    """Every profile and every faulty file: used, read, edited, made."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._profiles = front.services.profiles
        self._in_use = self._current = front.launch.profile or GENERAL

    async def read(self) -> ListPage:
        """List faults first, then the profiles by their origin."""
        troubles, profiles = self._profiles.troubles(), self._profiles.all()
        rows = [self._make_trouble_row(f"{TROUBLE} {number}", one) for number, one in enumerate(troubles)]
        for section in (BUILT, "Yours", "Of this project", *AGENTS):
            rows += [self._make_row(section, one) for one in profiles if _section(one) == section]
        return ListPage(
            "Profiles",
            tuple(rows),
            ((TAKE, "uses"), ("profile_read", "reads"), ("profile_edit", "edits"), ("profile_new", "new")),
            current=self._current,
        )

    def _make_row(self, section: str, one: Profile) -> PageRow:
        mode = one.permission_mode.value if one.permission_mode is not None else ""
        now = " (now)" if one.name == self._in_use else ""
        return PageRow(
            section,
            one.name,
            one.name,
            one.description,
            " · ".join(filter(None, (mode, "in use" if now else ""))),
            about=(f"{clean_line(one.description)}\n{settings_line(one)}",),
            spoken=f"{one.name}{now}, {one.description or 'no description'}",
            actions=(
                PageAction(partial(self._use, one.name), TAKE, "use it", closes=True),
                PageAction(partial(self._show, one), "profile_read"),
                PageAction(partial(self._edit_own, one), "profile_edit"),
                PageAction(partial(self._make, one.name), "profile_new"),
            ),
        )

    def _make_trouble_row(self, key: str, one: ProfileTrouble) -> PageRow:
        bare = one.text.removeprefix(f"{clean_line(str(one.path))}:")
        sentence = bare.lstrip() if bare == one.text or bare.startswith(" ") else f"line {bare}"
        return PageRow(
            TROUBLE,
            key,
            one.path.name,
            sentence,
            about=(clean_line(f"{short_path(one.path)}, {sentence}"),),
            spoken=clean_line(one.text),
            actions=(
                PageAction(partial(self._edit, one.path, one.line), f"{TAKE} profile_edit"),
                PageAction(partial(self._make, key), "profile_new"),
            ),
            is_bad=True,
        )

    async def _use(self, name: str) -> str:
        await use_profile(self._front, name)
        return ""

    async def _show(self, one: Profile) -> str:
        self._front.read(one.name, clean(profile_text(one)))
        return ""

    async def _edit_own(self, one: Profile) -> str:
        if one.source != BUILT_IN:
            return await self._edit(Path(one.source), 1)
        way = self._front.name_way("profile_new", "")
        self._front.tell(f"{one.name} is built in; {way} creates your own copy.")
        return ""

    async def _make(self, here: str) -> str:
        """Make a file of the user's, a copy or with the template, and edit it."""
        name = await self._front.ask_line("Name of the new profile")
        if not name:
            return ""
        known = self._profiles.all()
        options = [Option(one.name, f"a copy of {one.name}", (one.description,)) for one in known]
        begin = await self._front.pick(
            "Start from", [Option(EMPTY, "a template with explanations"), *options], current=here
        )
        if not begin:
            return ""
        copied = next((one for one in known if one.name == begin), None)
        try:
            path = self._profiles.create(name, TEMPLATE if copied is None else profile_text(copied, comment=COMMENT))
        except EngineError as error:
            self._front.tell(str(error), bad=True)
            return ""
        self._current = name
        return await self._edit(path, 1)

    async def _edit(self, path: Path, line: int) -> str:
        """Change a file in the user's own editor, and name its faults."""
        try:
            await self._front.edit(path, line=line)
        except EngineError as error:
            self._front.tell(str(error), bad=True)
        for trouble in self._profiles.untold():
            self._front.tell(trouble.text, bad=True)
        return ""


def _section(one: Profile) -> str:
    """Heading of the rows of its kind."""
    if is_agent_file(one):
        return AGENTS[not Path(one.source).is_relative_to(Path.home() / ".claude")]
    return "Of this project" if one.project else BUILT if one.source == BUILT_IN else "Yours"


def settings_line(profile: Profile) -> str:
    """Special settings of a profile: model, tools, mode, limits, source."""
    replies = f"{profile.max_turns} replies" if profile.max_turns else ""
    limit = ", ".join(filter(None, (replies, age(profile.timeout) if profile.timeout else "")))
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
