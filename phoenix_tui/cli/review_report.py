"""`phoenix review` on stdout: its findings as lines or as one object (CONTRACT 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from engine.machine.texts import without_keys
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.output import write_json, write_line, write_progress
from phoenix_tui.cli.reporters import OnStderr
from phoenix_tui.features.review_changes import ReviewFinding, parse_findings

if TYPE_CHECKING:
    from phoenix_tui.cli.outcome import RunOutcome

NO_LIST: Final = "The review ended without a list of findings; its answer: {answer}"


class ReviewReporter(OnStderr, eq=False, kw_only=True):
    """The findings on stdout, progress on stderr."""

    subject: str
    as_json: bool

    def end(self, outcome: RunOutcome) -> None:
        """The findings; the reason where there are none goes to stderr."""
        found, error = findings_of(outcome), ""
        if found is None and outcome.exit_code is Exit.OK:
            error = NO_LIST.format(answer=outcome.text.strip())
        elif found is None:
            error = without_keys(outcome.error)
        if self.as_json:
            write_review(self.subject, found, outcome, error)
            return
        for one in found or ():
            write_line(f"{one.place}: {one.severity}: {one.text}")
        if found is not None and not found:
            write_line(f"No findings in the {self.subject}.")
        if error:
            write_progress(f"phoenix: {error}")


def findings_of(outcome: RunOutcome) -> tuple[ReviewFinding, ...] | None:
    """The findings of a review that ended well; None of any other."""
    if outcome.exit_code is not Exit.OK or outcome.structured is None:
        return None
    return parse_findings(encode(outcome.structured))


def write_review(
    subject: str, found: tuple[ReviewFinding, ...] | None, outcome: RunOutcome | None = None, error: str = ""
) -> None:
    """Print the object of a review; without an outcome there was nothing to review."""
    write_json({
        "type": "review",
        "subject": subject,
        "findings": to_builtins(found or ()),
        "is_error": bool(error),
        "error": error or None,
        "session_id": outcome.session_id if outcome is not None else None,
        "model": outcome.model if outcome is not None else None,
        "total_cost_usd": outcome.cost if outcome is not None else 0.0,
    })
