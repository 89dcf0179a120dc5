"""Commands that change how Phoenix works: model, key, permissions, theme."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from engine.executor.requests import EngineError
from engine.ports import ConversationChanges, ModelInfo
from engine.ports.profiles import SANDBOX_FREEDOM
from engine.records import PermissionMode
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.commands.rules import rules
from phoenix_tui.modals.picker import PickerRow, PickerSheet
from phoenix_tui.modals.settings import RESET, SettingsSheet, ThemeSheet, when
from phoenix_tui.settings_surface import Setting
from phoenix_tui.text.labels import MODE_MEANINGS, SANDBOX_MEANINGS, sandbox_set, tokens, widening
from phoenix_tui.widgets.pasting import provider_of
from tools.contract import Enforcement, SandboxMode
from tools.wording import counted

RULES: Final = "rules"
"""What stands beside the modes: the rules."""


async def model(bench: CommandContext, reference: str) -> None:
    """Choose the model of this conversation."""
    if not reference:
        now = bench.desk.conversation.record.model if bench.desk.conversation else bench.desk.model
        offered = await bench.desk.services.models()
        choices = {one.reference: PickerRow(one.reference, one.reference, _remark(one)) for one in offered}
        present = choices.pop(now, PickerRow(now, now, "in use"))
        sheet = PickerSheet("Model of this conversation", [present, *choices.values()], current=now, free=True)
        reference = await bench.sheets.show(sheet) or ""
    if reference:
        await use_model(bench, reference)


def _remark(one: ModelInfo) -> str:
    window = f"{tokens(one.context_window)} window" if one.context_window else ""
    return " · ".join(part for part in ("on this machine" if one.local else "", window, one.note) if part)


async def use_model(bench: CommandContext, reference: str) -> None:
    """Use this model here and for new conversations of this session."""
    bench.desk.prefer(model=reference)
    try:
        await bench.desk.services.onboarding.accept_server(reference)
    except EngineError as error:
        bench.tell(str(error), bad=True)
    if reference.startswith("local/"):
        bench.tell("A small local model: check its work.")
    await bench.desk.attempt(lambda conversation: conversation.change(ConversationChanges(model=reference)))


async def key(bench: CommandContext, _: str) -> None:
    """Keep an API key; it is never shown."""
    secret = await bench.sheets.ask_line("Paste an API key (it is not shown)", secret=True)
    if secret:
        await keep_key(bench, secret)


async def keep_key(bench: CommandContext, secret: str) -> None:
    """Keep it under the provider it belongs to and use that provider."""
    provider = provider_of(secret)
    if not provider:
        names = [PickerRow(name, name) for name in ("anthropic", "openai")]
        provider = await bench.sheets.show(PickerSheet("Whose key is it?", names)) or ""
    if not provider:
        return
    try:
        reference = await bench.desk.services.onboarding.save_key(provider, secret)
    except EngineError as error:
        bench.tell(str(error), bad=True)
        return
    await use_model(bench, reference)
    bench.tell(f"Kept. {reference} is in use.")


async def permissions(bench: CommandContext, word: str) -> None:
    """Choose what runs without asking."""
    modes = {mode.value: mode for mode in PermissionMode}
    if word and word not in {*modes, RULES}:
        bench.tell(f"Modes: {', '.join(modes)}; {RULES} shows the rules.", bad=True)
        return
    if not word:
        choices = [PickerRow(mode.value, mode.value, MODE_MEANINGS[mode]) for mode in PermissionMode]
        count = len(bench.desk.services.engine.rules.all())
        choices.append(PickerRow(RULES, RULES, f"{counted(count, 'rule')}: see, edit, take back"))
        now = bench.desk.conversation.record.permission_mode if bench.desk.conversation else bench.desk.mode
        word = await bench.sheets.show(PickerSheet("What runs without asking", choices, current=now.value)) or ""
    if word == RULES:
        await rules(bench, "")
    elif word:
        await use_mode(bench, modes[word])


async def use_mode(bench: CommandContext, mode: PermissionMode) -> None:
    """Use this mode here."""
    bench.desk.prefer(mode=mode)
    await bench.desk.attempt(lambda conversation: conversation.change(ConversationChanges(permission_mode=mode)))


CYCLE: Final = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO, PermissionMode.PLAN)
"""The modes that Shift+Tab goes through."""


async def next_mode(bench: CommandContext) -> None:
    """The mode after the present one."""
    now = bench.desk.conversation.record.permission_mode if bench.desk.conversation else bench.desk.mode
    place = CYCLE.index(now) if now in CYCLE else -1
    await use_mode(bench, CYCLE[(place + 1) % len(CYCLE)])


async def sandbox(bench: CommandContext, word: str) -> None:
    """Choose the sandbox of this conversation; a wider one is confirmed."""
    desk = bench.desk
    record = desk.conversation.record if desk.conversation else None
    now = record.sandbox if record else desk.sandbox or desk.launch.sandbox
    if not word:
        choices = [PickerRow(one.value, one.value, SANDBOX_MEANINGS[one]) for one in SandboxMode]
        word = await bench.sheets.show(PickerSheet("Sandbox of this conversation", choices, current=now.value)) or ""
    if word not in set(SandboxMode):
        if word:
            bench.tell(f"Sandboxes: {', '.join(SandboxMode)}.", bad=True)
        return
    wanted = SandboxMode(word)
    wider = SANDBOX_FREEDOM[wanted] > SANDBOX_FREEDOM[now]
    if wider and not await bench.sheets.confirm(widening(now, wanted), "change it", "keep it"):
        return
    if desk.conversation is None:
        desk.sandbox = wanted
        desk.prefer()
    else:
        await desk.attempt(lambda conversation: conversation.change(ConversationChanges(sandbox=wanted)))
        if desk.conversation.record.sandbox is not wanted:
            return
    enforced = wanted is SandboxMode.OFF or await desk.services.enforcement() is not Enforcement.NONE
    desk.parts.status.enforced = enforced
    bench.tell(sandbox_set(wanted, enforced=enforced))


async def theme(bench: CommandContext, name: str) -> None:
    """Choose the colours and keep the choice."""
    names = bench.around.colours.names()
    if name and name not in names:
        bench.tell(f"There is no theme {name}. There are {', '.join(sorted(names))}.", bad=True)
        return
    sheet = ThemeSheet(names, names[0], bench.around.colours.choose)
    if chosen := name or await bench.sheets.show(sheet):
        _keep(bench, "theme", chosen)


async def mouse(bench: CommandContext, word: str) -> None:
    """Take the mouse, or leave it to the terminal, which then selects and copies by itself."""
    wanted = {"on": True, "off": False}.get(word, not bench.around.mouse)
    bench.around.watch_mouse(wanted)
    bench.tell("The mouse is Phoenix's." if wanted else "The mouse is the terminal's: it selects and copies.")


async def vim(bench: CommandContext, word: str) -> None:
    """Vim's keys in the composer, or no longer; the choice is kept."""
    wanted = {"on": True, "off": False}.get(word, bench.dock.composer.vim.keys is None)
    _keep(bench, "vim", "true" if wanted else "false")


async def config(bench: CommandContext, name: str) -> None:
    """Every setting; changed ones are kept in the user's file."""
    if name:
        if (now := await change_setting(bench, name)) is not None:
            bench.tell(f"{name}: {now.words or now.value or 'not set'}, {when(now)}.")
        return
    current = ""
    while chosen := await bench.sheets.show(SettingsSheet(bench.desk.services.settings.all(), current)):
        current = chosen.removeprefix(RESET)
        if chosen.startswith(RESET):
            bench.desk.services.settings.reset(current)
            _apply(bench, current)
        else:
            await change_setting(bench, current)


async def change_setting(bench: CommandContext, name: str) -> Setting | None:
    """Ask for another value and keep it; gives how it stands then, None where it is not to be told.

    Raises:
        EngineError: the file is broken.
    """
    found = _setting(bench, name)
    if found is None:
        bench.tell(f"There is no setting {name}. /config lists all.", bad=True)
    elif name == "theme":
        await theme(bench, "")
    elif (value := await _asked_value(bench, found)) is not None:
        return _keep(bench, name, value)
    return None


def _setting(bench: CommandContext, name: str) -> Setting | None:
    return next((one for one in bench.desk.services.settings.all() if one.name == name), None)


async def _asked_value(bench: CommandContext, setting: Setting) -> str | None:
    if setting.choices == ("true", "false"):
        return "false" if setting.value == "true" else "true"
    if setting.choices:
        choices = [PickerRow(one, one) for one in setting.choices]
        return await bench.sheets.show(PickerSheet(setting.name, choices, current=setting.value))
    return await bench.sheets.ask_line(f"{setting.name}: {setting.allowed}", setting.value)


def _keep(bench: CommandContext, name: str, value: str) -> Setting | None:
    """Keep it in the user's file; what is stronger than that file is named, and gives None."""
    try:
        bench.desk.services.settings.save(name, value)
        _apply(bench, name)
    except EngineError as error:
        bench.tell(str(error), bad=True)
        return None
    now = _setting(bench, name)
    if now is not None and now.value != value:
        bench.tell(f"Kept, but {now.source} is stronger: {name} stays {now.value or 'not set'}.", bad=True)
        return None
    return now


def _apply(bench: CommandContext, name: str) -> None:
    for one in bench.desk.services.settings.all():
        if one.name == name and one.live:
            bench.around.apply(name, one.value)


DOCTOR_COLUMN: Final = 20
"""Cells before what the doctor found (`ServiceOpener._doctor`)."""


async def doctor(bench: CommandContext, _: str) -> None:
    """What works on this machine."""
    bench.sheets.read("Doctor", Content(await bench.desk.services.doctor()), DOCTOR_COLUMN)


RUNS: Final[dict[str, Run]] = {
    "model": model,
    "key": key,
    "permissions": permissions,
    "sandbox": sandbox,
    "theme": theme,
    "config": config,
    "doctor": doctor,
    "mouse": mouse,
    "vim": vim,
}
