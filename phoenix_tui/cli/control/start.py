"""Starts a run that a host drives."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from phoenix_tui.cli.control.flags import control_flags
from phoenix_tui.cli.control.given_settings import with_settings
from phoenix_tui.cli.control.host_plugins import host_plugins
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import fault_of
from phoenix_tui.cli.output import write_json_line, write_progress
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.claude_words import known_model
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id
from tools.process.hardening import harden


def start_control(argv: Sequence[str]) -> int:
    """Serve the host on stdin and stdout until it closes stdin.

    Raises:
        CommandError: it cannot begin; a result says so to the host.
    """
    flags = control_flags(argv)
    if flags.awaits_initialize:
        from phoenix_tui.cli.control.launch_fields import first_line, launched  # noqa: PLC0415 - asyncio, 30 ms

        flags = launched(flags, first_line())
    flags = with_settings(flags)
    os.environ.update(flags.variables)
    if flags.run.model:
        flags = replace(flags, run=replace(flags.run, model=known_model(flags.run.model)))
    harden(debuggable=flags.run.allow_debugger)
    setup = prepare(flags.run, os.environ, flags.setting_sources)
    plugins = host_plugins(flags.plugin_dirs, setup.cwd, flags.plugin_dirs_no_mcp)
    setup = replace(setup, plugins=plugins.found, hooks=flags.hooks)

    from phoenix_tui.cli.control.session_store import explained  # noqa: PLC0415 - as above
    from phoenix_tui.cli.logs import start_log  # noqa: PLC0415 - as above
    from phoenix_tui.lifecycle.threads import run_loop  # noqa: PLC0415 - as above
    from phoenix_tui.wiring.control import run_control  # noqa: PLC0415 - as above

    start_log(setup.paths.log_file, setup.credentials.secrets(), debug=setup.settings.flag("debug"))
    for notice in (*flags.notices, *plugins.notices, *setup.notices()):
        write_progress(f"phoenix: {notice}")
    try:
        return run_loop(run_control(flags, setup, plugins))
    except BrokenPipeError:
        raise
    except Exception as error:  # the edge of a host's run: it reads a result, whatever happened
        fault = explained(fault_of(error), mirrors=flags.mirrors)
        write_json_line(refusal(fault, flags.run.session_id or flags.run.resume or fresh_id()))
        raise fault from error


def refusal(error: CommandError, session_id: str) -> JsonObject:
    """The result of a run that could not begin."""
    errors: list[JsonValue] = [error.sentence]
    nothing: list[JsonValue] = []
    return {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "stop_reason": None,
        "total_cost_usd": 0.0,
        "usage": {},
        "modelUsage": {},
        "permission_denials": nothing,
        "errors": errors,
        "session_id": session_id,
        "uuid": fresh_id(),
    }
