"""Starts the TUI: the zygote, then Textual and the first frame, then everything else (docs/decisions/textual.md)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.run_options import Effort, PermissionMode
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import SERVED
from phoenix_tui.cli.setup import Setup
from phoenix_tui.lifecycle.crash import CrashReports, find_left_open
from phoenix_tui.lifecycle.launch import Launch, Services, leave_out_palette
from phoenix_tui.lifecycle.stop_signals import END_SIGNALS, IN_A_TAB
from phoenix_tui.lifecycle.threads import load, run_loop
from phoenix_tui.lifecycle.watchdogs import MemoryLimit
from phoenix_tui.models.choice import DEFAULT_MODELS, ModelChoice, choose_model, needs_servers
from phoenix_tui.terminal import state
from phoenix_tui.terminal.background import recall_light
from phoenix_tui.wiring.start_facts import caps_of, caps_with, choose_sandbox, facts_of
from tools.process.link import ZygoteLink, spawn_zygote

if TYPE_CHECKING:
    from textual.driver import Driver

    from phoenix_tui.wiring.services import ServiceOpener

CRASHED = 1
"""Textual's return code after an unhandled exception."""


def run_screen(arguments: RunArguments, setup: Setup) -> int:
    """Show the TUI until it is left; returns the exit code.

    Raises:
        CommandError: the arguments are invalid here; no screen was shown.
    """
    if arguments.fork and arguments.resume == "":
        raise CommandError("--fork copies one conversation; name it with -r ID.")
    for name in arguments.images:
        if not os.access(Path(name).expanduser(), os.R_OK):
            raise CommandError(f"The image {name} cannot be read.")
    link = _spawn_zygote()
    try:
        conversation_id, wider = find_resumed_conversation(arguments, setup)
        choice = choose_start_model(setup)
        launch = launch_of(arguments, setup, choice, conversation_id)
        if not conversation_id and _begins_nothing(arguments):
            left = find_left_open(setup.paths.state / "open", setup.cwd)
            launch = replace(
                launch,
                conversation_id=left.conversation_id,
                reopened=bool(left.conversation_id),
                interrupted=left.interrupted,
            )
        return _show(launch, setup, choice, link, wider)
    finally:
        link.close()
        state.restore()


def _show(launch: Launch, setup: Setup, choice: ModelChoice, link: ZygoteLink, notice: str) -> int:
    leave_out_palette()
    from phoenix_tui.app import PhoenixApp  # noqa: PLC0415 - Textual, after the arguments were found good

    services = LateServices(setup, link, choice, notice)
    reports = CrashReports(setup.paths.log_file.parent, setup.credentials.secrets())
    app = PhoenixApp(launch, services.open, driver_class=_driver(), reports=reports)

    async def show() -> None:
        limit = MemoryLimit.of(setup.settings)
        app.shutdown.heed_signals(link, limit, app.warn, IN_A_TAB if SERVED in os.environ else END_SIGNALS)
        try:
            await app.run_async(mouse=launch.mouse)
        finally:
            await services.close(crashed=app.return_code == CRASHED)

    try:
        run_loop(show())
    finally:
        app.shutdown.stop_watching()
    if app.shutdown.last_words:
        state.restore()
        state.say(f"phoenix: {app.shutdown.last_words}\n")
    if app.shutdown.crash_note:
        state.restore()
        state.say(f"{app.shutdown.crash_note}\n")
    elif app.shutdown.note and SERVED not in os.environ:
        state.say(f"{app.shutdown.note}\n", output=1)
    _tell_of_update(setup, crashed=bool(app.shutdown.crash_note))
    return app.return_code or 0


def _tell_of_update(setup: Setup, *, crashed: bool) -> None:
    """Print the line about a newer release, where the user wants to know."""
    if crashed or SERVED in os.environ or not setup.settings.flag("update_check"):
        return
    from phoenix_tui.wiring.update_watch import update_notice  # noqa: PLC0415 - only where the user wants it

    if notice := update_notice(setup, os.environ):
        state.say(f"{notice}\n", output=1)


def _begins_nothing(arguments: RunArguments) -> bool:
    """True when the command line requests nothing of its own: then the conversation of a crash may be resumed."""
    asked = (arguments.prompt, arguments.images, arguments.name, arguments.system_prompt, arguments.ephemeral)
    return not any(asked) and arguments.resume is None and arguments.worktree is None


def _driver() -> type[Driver]:
    if SERVED in os.environ:
        from phoenix_tui.terminal.serving.web_driver import QuietWebDriver  # noqa: PLC0415 - in a browser only

        return QuietWebDriver
    from phoenix_tui.terminal.driver import QuietDriver  # noqa: PLC0415 - Textual, after the arguments were found good

    return QuietDriver


class LateServices(Struct):
    """Opens the services on request of the app, loading their code in a thread behind the first frame."""

    setup: Setup
    link: ZygoteLink
    choice: ModelChoice
    notice: str = ""
    """Sentence about the conversation that is resumed."""
    _opener: ServiceOpener | None = None

    async def open(self) -> Services:
        """Open all services behind the screens. Raises CannotOpen."""
        module = await load("phoenix_tui.wiring.services")
        opener: ServiceOpener = module.ServiceOpener(
            self.setup,
            os.environ,
            self.link,
            self.choice.reference,
            tuple(filter(None, ("" if self.choice.is_guide else self.choice.sentence, self.notice))),
            watches_updates=SERVED not in os.environ,
        )
        self._opener = opener
        return await opener.open()

    async def close(self, *, crashed: bool) -> None:
        """Close the services left by the app."""
        if self._opener is not None:
            await self._opener.close(crashed=crashed)


def _spawn_zygote() -> ZygoteLink:
    """The zygote notes the terminal's settings of the moment, so for that moment they are the user's own."""
    state.restore()
    link = spawn_zygote(terminal=0)
    state.make_raw_early()
    return link


def find_resumed_conversation(arguments: RunArguments, setup: Setup) -> tuple[str, str]:
    """The conversation that -c or -r names, or none, and a sentence where flags widen its limits."""
    if not arguments.continue_last and not arguments.resume:
        return "", ""
    from phoenix_tui.wiring.resume import find_resumed  # noqa: PLC0415 - the store, before the screen only here

    return find_resumed(arguments, setup)


def choose_start_model(setup: Setup) -> ModelChoice:
    """The model of a new conversation."""
    facts = facts_of(setup, os.environ)
    if needs_servers(facts):
        from phoenix_tui.models.accepted import with_nearby  # noqa: PLC0415 - only where no model or key is set

        facts = with_nearby(facts, setup.paths)
    choice = choose_model(facts)
    if "/" in choice.reference or choice.reference in DEFAULT_MODELS:
        return choice
    from phoenix_tui.wiring.models import name_model_of_server  # noqa: PLC0415 - HTTP, only for a server without a model

    return replace(choice, reference=asyncio.run(name_model_of_server(choice.reference, setup, os.environ)))


def launch_of(arguments: RunArguments, setup: Setup, choice: ModelChoice, conversation_id: str) -> Launch:
    """Options of the command line and the settings."""
    settings = setup.settings
    sandbox, required = choose_sandbox(settings, setup.cwd)
    return Launch(
        cwd=setup.cwd,
        state_folder=setup.paths.state,
        config_file=setup.paths.config_file,
        keymap_file=setup.paths.keymap_file,
        model=choice.reference,
        permission_mode=PermissionMode(settings.text("permission_mode") or PermissionMode.ASK),
        title=arguments.name or "",
        profile=settings.text("profile"),
        system_prompt=arguments.system_prompt or "",
        append_system_prompt=settings.text("append_system_prompt"),
        supervisor=settings.flag("route"),
        sandbox=sandbox,
        sandbox_required=required,
        effort=Effort(settings.text("effort")),
        is_first=not setup.paths.database.exists(),
        conversation_id=conversation_id,
        pick=arguments.resume == "",
        prompt=arguments.prompt or "",
        images=tuple(Path(name).expanduser() for name in arguments.images),
        caps=caps_with(setup, "", setup.cwd) or caps_of(settings),
        image_display=settings.text("images"),
        theme=settings.text("theme"),
        light_terminal=recall_light(setup.paths.state),
        themes_folder=setup.paths.themes,
        status_line=settings.status_line,
        notifications=settings.text("notifications"),
        terminal_title=settings.flag("terminal_title"),
        mouse=settings.flag("mouse"),
        vim=settings.flag("vim"),
        focus_view=settings.flag("focus_view"),
        copy_on_select=settings.flag("copy_on_select"),
        busy_enter=settings.text("busy_enter"),
        suggestions=settings.flag("suggestions"),
        plain=settings.flag("screen_reader") or state.is_plain(os.environ),
    )
