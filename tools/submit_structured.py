"""The tool `submit_structured`: the final answer of a run as JSON of a given shape."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.contract import (
    JsonObject,
    JsonValue,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.json_schema import SchemaError, check_schema, problem_of

NAME: Final = "submit_structured"
LARGEST: Final = 262_144
"""Characters of a schema."""
TAKEN: Final = "The answer was taken. End now; say nothing more."
DESCRIPTION: Final = (
    "Hand in your final answer in the shape that was asked for. Call it once, when the work is done, as your last act."
)
REMINDER: Final = (
    f"[You have not called {NAME} yet. Call it now with your final answer; an answer in words alone does not count.]"
)


def usable_schema(schema: JsonValue) -> JsonObject:
    """A schema as the input of the tool.

    Raises:
        SchemaError: it is not understood, or does not describe an object.
    """
    if not isinstance(schema, dict):
        raise SchemaError("The schema must be a JSON object.")
    check_schema(schema)
    if "type" in schema and schema["type"] != "object":
        raise SchemaError('The schema must describe an object: {"type": "object", …}.')
    return {**schema, "type": "object"}


class SubmitStructured:
    """Checks the answer and keeps it."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self.answer: JsonObject | None = None
        """The answer that was handed in last; None while there is none."""
        self.spec = ToolSpec(NAME, DESCRIPTION, schema, ToolClass.READ)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Check the answer.

        Raises:
            ToolInputError: it has another shape; the text names the place.
        """
        del working_dir
        if problem := problem_of(self._schema, args):
            raise ToolInputError(f"the answer does not match its schema: {problem}. Correct it and call {NAME} again.")
        return ToolRequest("the final answer")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Keep the answer."""
        del context
        self.answer = args
        return ToolOutput(TAKEN)
