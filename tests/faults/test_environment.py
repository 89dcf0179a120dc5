"""Hostile values of every variable that Python, SQLite, TLS, Textual or Phoenix reads: a sentence, or it works."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import phoenix_in
from tests.support.preloaded import SCREEN, run_door

LONG: Final = "x" * 3_000
WORKS: Final = (
    ("LANG", "xx_YY.nonsense"),
    ("LC_ALL", ""),
    ("LC_ALL", "POSIX"),
    ("LANGUAGE", "::::"),
    ("TERM", LONG),
    ("TERM", ""),
    ("HOME", ""),
    ("HOME", "relative"),
    ("HOME", "/dev/null"),
    ("TMPDIR", "/dev/null"),
    ("TMPDIR", "relative"),
    ("SQLITE_TMPDIR", "/dev/null"),
    ("COLUMNS", "-1"),
    ("COLUMNS", "9" * 30),
    ("LINES", "abc"),
    ("PATH", "/dev/null"),
    ("PATH", ""),
    ("TZ", LONG),
    ("XDG_CONFIG_HOME", "/dev/null"),
    ("SHELL", "relative"),
    ("FORCE_COLOR", "nonsense"),
    ("GIT_DIR", "/dev/null"),
    ("EDITOR", "'"),
    ("OLLAMA_HOST", "["),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://["),
    ("DISPLAY", "nonsense"),
    ("TMUX", "nonsense"),
    ("SSLKEYLOGFILE", "/dev/null/x"),
    ("SSL_CERT_FILE", "/dev/null/x"),
    ("ALL_PROXY", "nonsense://"),
    ("HTTPS_PROXY", "http://["),
    ("NO_PROXY", "[,,"),
    ("ANTHROPIC_BASE_URL", "http://["),
)
"""Values that change nothing for a model without a network."""
NAMED: Final = (
    ("PHOENIX_HOME", "/dev/null", "PHOENIX_HOME"),
    ("PHOENIX_HOME", "~nobody-of-this-name/x", "PHOENIX_HOME is ~nobody-of-this-name/x"),
    ("PHOENIX_PERMISSION_MODE", "nonsense", "PHOENIX_PERMISSION_MODE"),
    ("PHOENIX_TIMEOUT", "nan", "PHOENIX_TIMEOUT"),
    ("PHOENIX_TIMEOUT", "1e999", "PHOENIX_TIMEOUT"),
    ("PHOENIX_MODEL", "nonsense", "There is no provider 'nonsense'"),
)
DOORS: Final = (("-p", "hi"), ("conversations", "list"), (SCREEN,))


@pytest.mark.parametrize(("name", "value"), WORKS)
def test_a_variable_with_nonsense_in_it_changes_nothing(tmp_path: Path, name: str, value: str) -> None:
    ran = run_door(phoenix_in(tmp_path, **{name: value}), "-p", "hi")
    assert (ran.code, ran.out.startswith("Hello!")) == (0, True), ran.err


@pytest.mark.parametrize(("name", "value", "words"), NAMED)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_a_variable_that_counts_is_named(
    tmp_path: Path, name: str, value: str, words: str, door: tuple[str, ...]
) -> None:
    if name == "PHOENIX_MODEL" and door[0] != "-p":
        pytest.skip("it calls no model")
    ran = run_door(phoenix_in(tmp_path, **{name: value}), *door)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Internal error" not in ran.err


@pytest.mark.parametrize("variables", [{"SSLKEYLOGFILE": "/dev/null/x"}, {"HTTPS_PROXY": "http://["}])
def test_the_doctor_names_variables_of_the_network(tmp_path: Path, variables: dict[str, str]) -> None:
    ran = run_door(phoenix_in(tmp_path, **variables), "doctor", "--json")
    [finding] = [one for one in ran.json if one["topic"] == "network"]
    assert (ran.code, finding["health"]) == (1, "bad")
    assert finding["text"].startswith(next(iter(variables)))
