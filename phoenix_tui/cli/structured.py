"""`--json-schema`: the answer of a run as JSON of a given shape, and one reminder for a model that forgets it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.outcome import RunOutcome
from tools.contract import JsonObject, Tool
from tools.json_schema import SchemaError
from tools.submit_structured import LARGEST, NAME, REMINDER, SubmitStructured, usable_schema


class StructuredAnswer:
    """A source of the one tool, and the state of the answer in this turn."""

    def __init__(self, text: str | None) -> None:
        """Raise CommandError where `text` is no schema that can be checked; None: no answer of a shape is wanted."""
        self._tool = SubmitStructured(schema_of(text)) if text is not None else None
        self._reminded = False

    @property
    def is_wanted(self) -> bool:
        """True where there is a schema."""
        return self._tool is not None

    def use(self, schema: JsonObject) -> None:
        """Want an answer of this schema, which `usable_schema` gave."""
        self._tool = SubmitStructured(schema)

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """The tool, for the conversation itself and not for sub-agents."""
        return {NAME: self._tool} if self._tool is not None and record.agent is None else {}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """A sentence about the last act of a run."""
        if self._tool is None or record.agent is not None:
            return ()
        return (
            ExtensionPrompt("Final answer", f"When the work is done, call {NAME} with the answer.", "--json-schema"),
        )

    async def prepare(self, record: ConversationRecord) -> None:
        """Return at once."""

    def begin(self) -> None:
        """A turn begins: there is no answer yet."""
        self._reminded = False
        if self._tool is not None:
            self._tool.answer = None

    def reminder(self) -> str:
        """The next message for a run that ended without an answer: once in a turn, empty otherwise."""
        if self._tool is None or self._tool.answer is not None or self._reminded:
            return ""
        self._reminded = True
        return REMINDER

    def settle(self, outcome: RunOutcome) -> None:
        """Put the answer into the outcome of the run."""
        outcome.structured = self._tool.answer if self._tool is not None else None


def schema_of(text: str) -> JsonObject:
    """The schema of `--json-schema`, which is JSON or the path of a file with it.

    Raises:
        CommandError: it cannot be read, or is no schema that can be checked.
    """
    try:
        content = text if text.lstrip().startswith("{") else Path(text).read_text("utf-8-sig")
        if len(content) > LARGEST:
            raise CommandError(f"The schema of --json-schema is longer than {LARGEST:,} characters.")
        return usable_schema(json.loads(content))
    except SchemaError as error:
        raise CommandError(f"--json-schema: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"--json-schema needs a JSON schema, or a file with one: {reason}.") from error
