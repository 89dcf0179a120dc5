"""Profiles: front matter sets, the body instructs, and a mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.config.load import Layer, merge
from phoenix_tui.config.profiles import beneath, profile_layer, profile_names
from phoenix_tui.config.settings import ConfigError

REVIEW = """---
name: review
# how a reviewer works
description: "reads, never writes"
model: anthropic/claude-haiku-5-5
permission_mode: plan
---

Look for mistakes first.
"""


def write(folder: Path, text: str, name: str = "review") -> Path:
    (folder / f"{name}.md").write_text(text)
    return folder


def test_a_profile_sets_model_mode_and_prompt(tmp_path: Path) -> None:
    layer = profile_layer(write(tmp_path, REVIEW), "review")
    assert layer.values == {
        "model": "anthropic/claude-haiku-5-5",
        "permission_mode": "plan",
        "append_system_prompt": "Look for mistakes first.",
    }
    assert layer.sources["model"] == f"{tmp_path}/review.md:5"


def test_a_profile_beats_the_users_file_and_a_flag_beats_the_profile(tmp_path: Path) -> None:
    profile = profile_layer(write(tmp_path, REVIEW), "review")
    user = Layer({"model": "demo/guide", "theme": "light"}, {"model": "u", "theme": "u"})
    settings = merge(beneath(user, profile), Layer(), Layer(), Layer({"permission_mode": "ask"}, {}))
    assert (settings.text("model"), settings.text("theme")) == ("anthropic/claude-haiku-5-5", "light")
    assert settings.text("permission_mode") == "ask"


def test_the_built_in_profile_changes_nothing_and_no_name_is_no_profile(tmp_path: Path) -> None:
    assert profile_layer(tmp_path, "general") == profile_layer(tmp_path, "") == Layer()


def test_a_file_without_front_matter_is_all_prompt(tmp_path: Path) -> None:
    assert profile_layer(write(tmp_path, "Be brief.\n"), "review").values == {"append_system_prompt": "Be brief."}


def test_profiles_are_listed_with_the_built_in_one_first(tmp_path: Path) -> None:
    write(write(tmp_path, "x", "zebra"), "x", "ant")
    assert profile_names(tmp_path) == ("general", "ant", "zebra")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nmodell: x\n---\n", "review.md:2: 'modell: x' is no setting. Known are name, description, model"),
        ("---\nmodel: x\n", "review.md:1: the front matter that begins here has no closing '---'"),
        ("---\npermission_mode: maybe\n---\n", "review.md:2: 'permission_mode' must be one of ask"),
    ],
)
def test_a_mistake_names_file_line_and_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        profile_layer(write(tmp_path, text), "review")
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["nobody", "../review", "/etc/passwd"])
def test_an_unknown_profile_is_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"There are: general, review\."):
        profile_layer(write(tmp_path, REVIEW), name)
