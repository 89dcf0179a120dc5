"""The order of CONTRACT 5."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model, needs_servers
from phoenix_tui.models.known import own_file
from phoenix_tui.models.servers import LocalServer, ServerKind

EVERYTHING = ModelFacts(
    flag="openai/gpt-5",
    conversation="anthropic/claude-haiku-5-5",
    environment="ollama/a",
    config="ollama/b",
    has_anthropic_key=True,
    has_openai=True,
    servers=(LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11434/v1", ("qwen:7b", "x")),),
    embedded=("qwen2.5-coder-1.5b",),
)
ORDER = [
    ("flag", "", "openai/gpt-5", ChosenBy.FLAG),
    ("conversation", "", "anthropic/claude-haiku-5-5", ChosenBy.CONVERSATION),
    ("environment", "", "ollama/a", ChosenBy.ENVIRONMENT),
    ("config", "", "ollama/b", ChosenBy.CONFIG),
    ("has_anthropic_key", False, "anthropic/claude-sonnet-5-5", ChosenBy.ANTHROPIC_KEY),
    ("has_openai", False, "openai", ChosenBy.OPENAI_KEY),
    ("servers", (), "ollama/qwen:7b", ChosenBy.LOCAL_SERVER),
    ("embedded", (), "local/qwen2.5-coder-1.5b", ChosenBy.EMBEDDED),
]


def test_each_fact_decides_when_all_before_it_are_missing() -> None:
    facts = EVERYTHING
    for name, missing, reference, chosen_by in ORDER:
        choice = choose_model(facts)
        assert (choice.reference, choice.chosen_by) == (reference, chosen_by)
        facts = replace(facts, **{name: missing})
    assert choose_model(facts).is_guide


def test_servers_are_only_looked_for_when_they_could_matter() -> None:
    assert needs_servers(ModelFacts())
    assert not needs_servers(ModelFacts(config="ollama/b"))
    assert not needs_servers(ModelFacts(has_anthropic_key=True))


@pytest.mark.parametrize(
    "facts", [replace(ModelFacts(), servers=EVERYTHING.servers), ModelFacts(embedded=("a",)), ModelFacts()]
)
def test_a_fallback_is_said_aloud(facts: ModelFacts) -> None:
    choice = choose_model(facts)
    assert choice.sentence.endswith(".")
    assert choice.reference.split("/")[1] in choice.sentence


def test_a_model_somebody_named_needs_no_word() -> None:
    assert choose_model(EVERYTHING).sentence == ""
    assert choose_model(ModelFacts(flag="  anthropic ")).reference == "anthropic/claude-sonnet-5-5"


def test_the_own_file_is_named_by_the_environment(tmp_path: Path) -> None:
    assert own_file({"PHOENIX_GGUF": f" {tmp_path}/b.gguf "}) == tmp_path / "b.gguf"
    assert own_file({"PHOENIX_GGUF": "~/b.gguf"}) == Path.home() / "b.gguf"
    assert own_file({"PHOENIX_GGUF": ""}) is None
    assert own_file({}) is None
