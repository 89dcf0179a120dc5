"""Starts a run that a host drives."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from phoenix_tui.cli.control.options import add_launch_fields, add_settings, read_first_line, read_flags
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.faults import fault_of
from phoenix_tui.cli.output import write_json_line, write_progress
from phoenix_tui.cli.setup import prepare
from phoenix_tui.config.claude_settings import translate_model
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id
from tools.process.hardening import harden


def start_control(argv: Sequence[str]) -> int:
    """Serve the host on stdin and stdout until it closes stdin.

    Raises:
        CommandError: it cannot begin; a result says so to the host.
    """
    options = read_flags(argv)
    if options.awaits_initialize:
        options = add_launch_fields(options, read_first_line())
    options = add_settings(options)
    os.environ.update(options.variables)
    if options.run.model:
        options = replace(options, run=replace(options.run, model=translate_model(options.run.model)))
    harden(debuggable=options.run.allow_debugger)
    setup = prepare(options.run, os.environ, options.setting_sources)
    from phoenix_tui.cli.control.extensions import find_plugins  # noqa: PLC0415 - 100 ms, not for a wrong command line

    plugins = find_plugins(options.plugin_dirs, setup.cwd, options.plugin_dirs_no_mcp)
    setup = replace(setup, plugins=plugins.found, hooks=options.hooks)

    from phoenix_tui.cli.control.reporter import explain_unknown  # noqa: PLC0415 - as above
    from phoenix_tui.cli.logs import start_log  # noqa: PLC0415 - as above
    from phoenix_tui.lifecycle.threads import run_loop  # noqa: PLC0415 - as above
    from phoenix_tui.wiring.control import run_control  # noqa: PLC0415 - as above

    start_log(setup.paths.log_file, setup.credentials.secrets(), debug=setup.settings.flag("debug"))
    for notice in (*options.notices, *plugins.notices, *setup.notices()):
        write_progress(f"phoenix: {notice}")
    try:
        return run_loop(run_control(options, setup, plugins))
    except BrokenPipeError:
        raise
    except Exception as error:  # the edge of a host's run: it reads a result, whatever happened
        fault = explain_unknown(fault_of(error), mirrors=options.mirrors)
        write_json_line(make_refusal(fault, options.run.session_id or options.run.resume or fresh_id()))
        raise fault from error


def make_refusal(error: CommandError, session_id: str) -> JsonObject:
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
