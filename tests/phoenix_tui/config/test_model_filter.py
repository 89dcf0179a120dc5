"""The filter of a provider's models in config.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.config.load import parse_layer
from phoenix_tui.config.provider_tables import admits
from phoenix_tui.config.settings import ConfigError


def parsed(value: str) -> tuple[str, ...]:
    text = f'[providers.work]\nbase_url = "https://gateway.example/v1"\nmodels = {value}\n'
    return parse_layer(text, Path("config.toml"), project=False).providers[0].models


@pytest.mark.parametrize(
    ("patterns", "model", "shown"),
    [
        ((), "anything", True),
        (("z-ai/*",), "z-ai/glm-4.7", True),
        (("z-ai/*",), "other/glm", False),
        (("z-ai/*", "!*:free"), "z-ai/glm:free", False),
        (("!*:free",), "z-ai/glm", True),
        (("!*:free", "z-ai/*"), "z-ai/glm:free", False),
        (("Z-AI/GLM-4.?",), "z-ai/glm-4.7", True),
        (("gpt-[45]*",), "gpt-5.2", True),
        (("[",), "[", True),
    ],
)
def test_a_pattern_admits_and_one_with_a_mark_leaves_out(patterns: tuple[str, ...], model: str, shown: bool) -> None:
    assert admits(patterns, model) is shown


def test_a_pattern_of_many_stars_ends_at_once() -> None:
    assert not admits(("*a" * 90 + "*b",), "a" * 10_000)


def test_patterns_are_read_from_the_table_of_a_provider() -> None:
    assert parsed('["z-ai/*", "!*:free"]') == ("z-ai/*", "!*:free")
    assert parsed("[]") == ()


LONG, MANY = f'["{"x" * 201}"]', "[" + '"a",' * 101 + "]"


@pytest.mark.parametrize("value", ['"z-ai/*"', "5", "[5]", '[""]', '["!"]', LONG, MANY])
def test_what_is_no_list_of_patterns_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(ConfigError, match=r"config.toml:3: 'models' must be a list of at most 100 patterns, such as"):
        parsed(value)
