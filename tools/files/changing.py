"""The common part of write_file and patch: the request with its diff, and the change with its outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tools.contract import DiffDisplay, ToolContext, ToolInputError, ToolOutput, ToolRequest
from tools.failure import ToolFailure, explain, failed
from tools.files.formatting import NotedChange, TextFormatter, with_format
from tools.files.ledger import ReadLedger
from tools.files.location import Location, admit, resolve, shown
from tools.files.writing import Change, preview, read_existing, rewrite


def change_request(path: str, working_dir: Path, change: Change) -> ToolRequest:
    """The path and the whole diff of a change that is not made yet, or its trouble where it cannot be made.

    Raises:
        ToolInputError: there can be no such path.
    """
    target = resolve(path, working_dir)
    location = Location(Path(target.anchor), target.parts[1:], shown(target, working_dir))
    try:
        difference = preview(location, change)
    except ToolFailure as failure:
        return ToolRequest(location.shown, (target,), trouble=str(failure))
    except OSError as error:
        return ToolRequest(location.shown, (target,), trouble=explain(error, location.shown))
    return ToolRequest(summary=location.shown, paths=(target,), preview=difference)


async def foresee_change(path: str, context: ToolContext, ledger: ReadLedger) -> None:
    """Make sure the conversation has read the file that it is about to change.

    Raises:
        ToolInputError: it has not, or the file has changed since.
    """
    try:
        await asyncio.to_thread(_check_seen, path, context, ledger)
    except ToolFailure as failure:
        raise ToolInputError(str(failure)) from failure
    except OSError as error:
        raise ToolInputError(explain(error, path)) from error


def _check_seen(path: str, context: ToolContext, ledger: ReadLedger) -> None:
    location = admit(path, context)
    existing = read_existing(location)
    if existing is not None:
        ledger.check(context.conversation_id, location.path, existing.version, location.shown)


async def change_file(
    path: str, context: ToolContext, ledger: ReadLedger, change: Change, formatter: TextFormatter | None = None
) -> ToolOutput:
    """Make a change and describe it; a failure leaves the file unchanged."""
    noted = NotedChange(change)
    try:
        location = await asyncio.to_thread(admit, path, context)
        difference = await rewrite(location, context, ledger, noted)
    except ToolFailure as failure:
        return failed(str(failure))
    except OSError as error:
        return failed(explain(error, path))
    output = ToolOutput(_summary(difference), display=difference)
    if formatter is None:
        return output
    return await with_format(output, noted, location, context, ledger, formatter)


def _summary(difference: DiffDisplay) -> str:
    if difference.created:
        return f"Created {difference.path}: +{difference.added} lines."
    if not difference.added and not difference.removed:
        return f"{difference.path} already has this content; nothing was written."
    return f"Changed {difference.path}: +{difference.added} -{difference.removed} lines."
