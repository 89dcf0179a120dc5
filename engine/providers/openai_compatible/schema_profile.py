"""JSON schemas of tools in the subset that a family of models takes. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from engine.providers.names import bare_name
from tools.contract import JsonObject, JsonValue

SchemaProfile: TypeAlias = Literal["full", "gemini"]
DEEPEST: Final = 20
"""Levels of a schema that are kept; a reference to itself ends there."""
_REFUSED: Final = frozenset({
    "$schema",
    "$id",
    "$defs",
    "$comment",
    "definitions",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "if",
    "then",
    "else",
    "not",
    "examples",
    "contentEncoding",
    "contentMediaType",
})
"""Keywords that Gemini answers with status 400, or that mean nothing without their references."""
_NAMED: Final = frozenset({"properties"})
"""Keywords whose object has names of the user's, which are no keywords."""
_GEMINI: Final = re.compile(r"gemini-")


def profile_of(profile: SchemaProfile, model: str) -> SchemaProfile:
    """The profile for a model: a gateway that takes any schema hands it on to Gemini, too."""
    return "gemini" if _GEMINI.match(bare_name(model)) else profile


def fitted_schema(schema: JsonObject, profile: SchemaProfile) -> JsonObject:
    """The schema as the family takes it; what it cannot say is left out, so that it allows more, never less."""
    if profile == "full":
        return schema
    found = _Inliner(schema).value(schema, 0)
    return found if isinstance(found, dict) else {"type": "object"}


class _Inliner:
    """Replaces references by their targets and drops the refused keywords."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = 20_000
        """Values that may still be written: references to references multiply."""

    def value(self, value: JsonValue, depth: int) -> JsonValue:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            return {} if isinstance(value, dict) else None if isinstance(value, list) else value
        if isinstance(value, list):
            return [self.value(one, depth + 1) for one in value]
        return self._schema(value, depth) if isinstance(value, dict) else value

    def _schema(self, schema: JsonObject, depth: int) -> JsonObject:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            target = self.value(self._target(reference) | rest, depth + 1)
            return target if isinstance(target, dict) else {}
        written: JsonObject = {}
        for name, value in schema.items():
            if name in _REFUSED:
                continue
            if name == "const":
                written["enum"] = [value]
            elif name in {"enum", "default", "required"}:
                written[name] = value
            elif name in _NAMED and isinstance(value, dict):
                written[name] = {key: self.value(one, depth + 1) for key, one in value.items()}
            else:
                written[name] = self.value(value, depth + 1)
        return written

    def _target(self, reference: str) -> JsonObject:
        """The schema that a local reference names; any schema for others, and for one that is nowhere."""
        found: JsonValue = self._root if reference.startswith("#") else {}
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}
