"""Files in Phoenix's own folder: modes, whole files, kept comments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.permissions.rules import KeptRule
from phoenix_tui.config.credentials import load_credentials, save_key
from phoenix_tui.config.load import set_value, user_layer
from phoenix_tui.config.paths import find_paths
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.settings import ConfigError
from tools.files.own_files import write_file


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("umask")
def test_folders_are_0700_and_files_0600_whatever_the_umask(tmp_path: Path) -> None:
    paths = find_paths({"PHOENIX_HOME": str(tmp_path / "home")})
    paths.make()
    write_file(paths.config_file, "x = 1\n")
    assert mode(paths.config) == 0o700
    assert mode(paths.config_file) == 0o600


def test_without_phoenix_home_the_platform_folders_are_used() -> None:
    paths = find_paths({})
    assert {paths.config.name, paths.data.name, paths.state.name} == {"phoenix"}
    assert paths.config != paths.data


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.mkdir()
    (path / "child").touch()
    with pytest.raises(OSError, match="directory"):
        write_file(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.toml"]


def test_setting_a_value_keeps_comments_and_order(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\nmodel = "a/b"  # why\ntheme = "x"\n')
    set_value(path, "model", "c/d")
    assert path.read_text() == '# mine\nmodel = "c/d"  # why\ntheme = "x"\n'
    set_value(path, "max_turns", 4)
    assert user_layer(path).values == {"model": "c/d", "theme": "x", "max_turns": 4}


def test_setting_a_key_stands_above_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[providers.x]\nbase_url = 'http://x'\n")
    set_value(path, "model", "x/y")
    assert user_layer(path).values == {"model": "x/y"}
    assert [provider.name for provider in user_layer(path).providers] == ["x"]


def test_a_wrong_value_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match="must be one of"):
        set_value(path, "sandbox", "none")
    assert not path.exists()


def test_a_key_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    save_key(path, "anthropic", "stored-1")
    save_key(path, "my-lab", "stored-2")
    assert mode(path) == 0o600
    credentials = load_credentials(path, {"ANTHROPIC_API_KEY": "from-env"})
    assert credentials.key("anthropic") == "from-env"
    assert credentials.key("my-lab") == "stored-2"
    assert credentials.key("openai") == ""
    assert credentials.source("anthropic") == "ANTHROPIC_API_KEY"
    assert credentials.source("my-lab") == "credentials.toml"
    assert set(credentials.secrets()) == {"from-env", "stored-1", "stored-2"}
    assert "stored-1" not in repr(credentials)


def test_a_readable_credentials_file_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[openai]\napi_key = "k"\n')
    path.chmod(0o644)
    assert load_credentials(path, {}).key("openai") == "k"
    assert mode(path) == 0o600


def test_a_broken_credentials_file_is_named_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[openai]\nkey = "sk-secret"\n')
    with pytest.raises(ConfigError) as caught:
        load_credentials(path, {})
    assert f"{path}:1: [openai] must hold api_key" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_rules_are_kept_once_and_seen_by_every_process(tmp_path: Path) -> None:
    first, second = RuleFile(tmp_path / "rules.toml"), RuleFile(tmp_path / "rules.toml")
    assert first.rules() == ()
    first.add(KeptRule("bash(make test*)"))
    first.add(KeptRule('bash(echo "a\\b" \x7f ü)'))
    first.add(KeptRule("bash(make test*)"))
    assert [rule.text for rule in second.rules()] == ["bash(make test*)", 'bash(echo "a\\b" \x7f ü)']
    assert mode(second.path) == 0o600


def test_a_broken_rules_file_allows_nothing_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("allow = 3\n")
    assert RuleFile(path).rules() == ()
    with pytest.raises(OSError, match="must be a list"):
        RuleFile(path).add(KeptRule("bash(ls)"))
    assert path.read_text() == "allow = 3\n"


def test_rules_are_kept_per_project_and_a_person_can_read_the_file(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    kept = (
        KeptRule("bash(ls*)", 1_763_000_000.0),
        KeptRule("bash(make test)", project='/work/a "b"'),
        KeptRule("bash(make test)", 1_763_000_000.0, "/work/c"),
    )
    for rule in kept:
        file.add(rule)
    assert file.rules() == kept
    assert file.path.read_text() == (
        "# Tool calls that run without asking, in every project and, below, by project.\n"
        'allow = [\n  "bash(ls*)",\n]\n\n[since]\n"bash(ls*)" = 2025-11-13T02:13:20Z\n'
        '\n[projects."/work/a \\"b\\""]\nallow = [\n  "bash(make test)",\n]\n'
        '\n[projects."/work/c"]\nallow = [\n  "bash(make test)",\n]\n'
        '\n[projects."/work/c".since]\n"bash(make test)" = 2025-11-13T02:13:20Z\n'
    )
    file.remove(KeptRule("bash(make test)", project="/work/c"))
    assert file.rules() == kept[:2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("projects = 3\n", "'projects' must be tables"),
        ("[projects.a]\nallow = []\n", "must be a table with the absolute path of a folder"),
        ('[projects."/a"]\nallow = 3\n', "'allow' must be a list of texts"),
        ('[projects."/a"]\nalow = []\n', "'alow' is unknown"),
        ("since = 3\n", "'since' must be a table of dates"),
        ('[projects]\n"/a" = 3\n', "must be a table"),
    ],
)
def test_nonsense_in_the_rules_file_is_named_and_costs_no_rule(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('allow = ["bash(ls*)"]\n' + text)
    file = RuleFile(path)
    assert [rule.text for rule in file.rules()] == ["bash(ls*)"]
    assert sentence in file.trouble() and file.trouble().endswith(".")
    before = path.read_text()
    with pytest.raises(OSError, match=r"must be|unknown"):
        file.add(KeptRule("bash(cat*)"))
    with pytest.raises(OSError, match=r"must be|unknown"):
        file.remove(KeptRule("bash(ls*)"))
    assert path.read_text() == before


def test_a_rules_file_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.toml")
    assert RuleFile(tmp_path / "rules.toml").rules() == ()
    assert "not a readable file" in RuleFile(tmp_path / "rules.toml").trouble()
