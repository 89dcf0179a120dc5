"""Choice of a conversation's model: the order of CONTRACT 5 as a pure function of facts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.models.servers import LocalServer

GUIDE = "demo/guide"
LONGEST_NAME = 100
"""Characters of a model's name that are shown."""
DEFAULT_MODELS = {"anthropic": "claude-sonnet-5-5"}
"""Models for bare provider names, if their server is not asked (CONTRACT 5)."""


class ChosenBy(StrEnum):
    """Facts that can decide."""

    FLAG = "flag"
    CONVERSATION = "conversation"
    ENVIRONMENT = "environment"
    CONFIG = "config"
    ANTHROPIC_KEY = "anthropic_key"
    OPENAI_KEY = "openai_key"
    PRESET_KEY = "preset_key"
    LOCAL_SERVER = "local_server"
    EMBEDDED = "embedded"
    GUIDE = "guide"


class ModelFacts(Struct, frozen=True):
    """All that the choice depends on. Empty texts mean "not given"."""

    flag: str = ""
    """`--model`."""
    conversation: str = ""
    """The model an existing conversation has."""
    environment: str = ""
    """`PHOENIX_MODEL`."""
    config: str = ""
    has_anthropic_key: bool = False
    has_openai: bool = False
    """`OPENAI_API_KEY` or `OPENAI_BASE_URL` is set."""
    preset: str = ""
    """PROVIDER/MODEL of the one well-known service with a default model whose key is set; empty for none or several."""
    servers: Sequence[LocalServer] = ()
    """Servers of this machine that the user accepted."""
    waiting: Sequence[LocalServer] = ()
    """Servers without the user's consent: another user of this machine may listen there."""
    embedded: Sequence[str] = ()
    """Names of usable embedded models; the user's own file first."""


class ModelChoice(Struct, frozen=True):
    """A model and why it is this one."""

    reference: str
    """PROVIDER/MODEL, or a bare provider name whose server is asked for its first model."""
    chosen_by: ChosenBy
    sentence: str = ""
    """Notice when the user did not name the model; a fallback is never silent."""
    waiting: str = ""
    """Notice about a server that would be used after consent; empty where there is none."""

    @property
    def is_guide(self) -> bool:
        """True when no model was found at all."""
        return self.reference == GUIDE


def choose_model(facts: ModelFacts) -> ModelChoice:
    """The first that is given: flag, conversation, environment, config, keys, server, embedded, guide."""
    return _find_named(facts) or _with_key(facts) or _on_this_machine(facts)


def needs_servers(facts: ModelFacts) -> bool:
    """True when looking for local servers could change the choice; saves 300 ms where it could not."""
    return _find_named(facts) is None and _with_key(facts) is None


def _find_named(facts: ModelFacts) -> ModelChoice | None:
    given = (
        (facts.flag, ChosenBy.FLAG),
        (facts.conversation, ChosenBy.CONVERSATION),
        (facts.environment, ChosenBy.ENVIRONMENT),
        (facts.config, ChosenBy.CONFIG),
    )
    for reference, chosen_by in given:
        if reference.strip():
            return ModelChoice(full_reference(reference.strip()), chosen_by)
    return None


def _with_key(facts: ModelFacts) -> ModelChoice | None:
    if facts.has_anthropic_key:
        return ModelChoice(full_reference("anthropic"), ChosenBy.ANTHROPIC_KEY)
    if facts.has_openai:
        return ModelChoice("openai", ChosenBy.OPENAI_KEY)
    if facts.preset:
        provider = facts.preset.partition("/")[0]
        return ModelChoice(facts.preset, ChosenBy.PRESET_KEY, f"The key of {provider} is set: using {facts.preset}.")
    return None


def _on_this_machine(facts: ModelFacts) -> ModelChoice:
    if facts.servers:
        server = facts.servers[0]
        return ModelChoice(
            server.reference,
            ChosenBy.LOCAL_SERVER,
            f"No API key is set: using {server.models[0]} of the server at {server.base_url}.",
        )
    waiting = _of_waiting(facts.waiting)
    if facts.embedded:
        reference = f"local/{facts.embedded[0]}"
        return ModelChoice(
            reference,
            ChosenBy.EMBEDDED,
            f"No API key is set: using {reference}, a very small model for trying, not for work. {waiting}".rstrip(),
            waiting,
        )
    return ModelChoice(
        GUIDE,
        ChosenBy.GUIDE,
        waiting
        or "No model is available, so demo/guide answers by fixed rules. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
        "run `phoenix model install`, or start a local server.",
        waiting,
    )


def _of_waiting(servers: Sequence[LocalServer]) -> str:
    """One sentence about the first; the names come from an unknown server."""
    if not servers:
        return ""
    from phoenix_tui.models.servers import ENDPOINTS  # noqa: PLC0415 - where servers were looked for, it is loaded

    server, words = servers[0], {one.kind: one.words for one in ENDPOINTS}
    reference = clean_line(server.reference[:LONGEST_NAME])
    return (
        f"No API key is set, and {server.base_url} looks like {words[server.kind]}; nothing is sent to it "
        f"until you choose it, once with `/model` or each time with `-m {reference}`."
    )


def full_reference(reference: str) -> str:
    """Complete a bare provider name such as `anthropic` with its default model; other references stay unchanged."""
    default = DEFAULT_MODELS.get(reference)
    return f"{reference}/{default}" if default else reference
