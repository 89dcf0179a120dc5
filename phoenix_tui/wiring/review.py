"""`phoenix review`: one run of the profile `review` over changes of git, and its findings."""

from __future__ import annotations

import json
import os
from argparse import Namespace

from engine.executor.requests import EngineError
from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.headless import HeadlessRun, StructuredAnswer
from phoenix_tui.cli.logs import start_log
from phoenix_tui.cli.outcome import RunOutcome
from phoenix_tui.cli.output import write_line, write_progress
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.review_report import ReviewReporter, findings_of, write_review
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.features.review_changes import REVIEW, SCHEMA, STAGED, NothingToReview, ReviewSubject, read_changes
from phoenix_tui.lifecycle.threads import run_loop
from phoenix_tui.lifecycle.watchdogs import MemoryLimit
from phoenix_tui.wiring.backend import Backend, Outside, open_backend
from phoenix_tui.wiring.headless import begin_run
from phoenix_tui.wiring.installation import waits_on_stderr


def run_review(parsed: Namespace) -> Exit:
    """Run it and return the exit code.

    Raises:
        CommandError: it cannot begin.
    """
    if parsed.staged and parsed.what:
        raise CommandError(f"{STAGED} reviews the staged changes; leave it out with {parsed.what}.")
    fields = vars(run_parser().parse_args(["-p", "--profile", REVIEW, "review"]))
    given = {name: value for name, value in vars(parsed).items() if name in fields}
    arguments = run_arguments(Namespace(**fields | given))
    setup = prepare(arguments, os.environ)
    start_log(setup.paths.log_file, setup.credentials.secrets(), debug=setup.settings.flag("debug"))
    for notice in setup.notices():
        write_progress(notice)
    return run_loop(_open(arguments, setup, STAGED if parsed.staged else parsed.what, as_json=parsed.json))


async def _open(arguments: RunArguments, setup: Setup, what: str, *, as_json: bool) -> Exit:
    structured = StructuredAnswer(json.dumps(SCHEMA))
    outside = Outside((structured,))
    backend = await open_backend(setup, os.environ, strict_guide=True, waits=waits_on_stderr(setup), outside=outside)
    try:
        is_closed = backend.engine.rules.build_denied_test(setup.cwd)
        subject = await read_changes(backend.processes.runner, setup.cwd, what, is_closed)
        return await _run(backend, arguments, setup, subject, structured, as_json=as_json)
    except NothingToReview as nothing:
        if as_json:
            write_review("", ())
        else:
            write_line(str(nothing))
        return Exit.OK
    except EngineError as error:
        raise CommandError(str(error)) from error
    finally:
        await end_quietly(backend.close())


async def _run(
    backend: Backend,
    arguments: RunArguments,
    setup: Setup,
    subject: ReviewSubject,
    structured: StructuredAnswer,
    *,
    as_json: bool,
) -> Exit:
    outcome = RunOutcome("", "")
    conversation, caps, _ = await begin_run(backend, arguments, setup, outcome)
    run = HeadlessRun(
        backend.engine,
        conversation,
        ReviewReporter(subject=subject.title, as_json=as_json),
        outcome,
        link=backend.processes.link,
        limit=MemoryLimit.of(setup.settings),
        structured=structured,
        attached=(subject.attached,),
    )
    code = await run.perform(subject.words, (), caps)
    return Exit.FAILED if code is Exit.OK and findings_of(outcome) is None else code
