"""Rules in the names of Claude Code, in files, in `/rules` and in profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.permissions.denials import denials_in_force
from engine.permissions.rules import KeptRule, Rule, native_rules, rules_in_force
from engine.ports.profiles import ProfileError
from phoenix_tui.config.profile_files import parse_profile
from tests.support.fake_rules import rule_desk

CWD = Path("/work/project")


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("Bash(git log:*)", ("bash(git log *)",)),
        ("Bash(git log *)", ("bash(git log *)",)),
        ("Bash(make test)", ("bash(make test)",)),
        ("Bash(:*)", ("bash(:*)",)),
        ("Bash", ("Bash",)),
        ("deny Bash", ("deny bash(*)",)),
        ("deny  Bash(rm:*)", ("deny bash(rm *)",)),
        ("Read(//etc/**)", ("read_file(/etc/*)", "read_image(/etc/*)")),
        ("Edit(/src/**/*.py)", ("patch(src/*.py)", "write_file(src/*.py)")),
        ("Read(./a)", ("read_file(a)", "read_image(a)")),
        ("deny Write(a)", ("deny write_file(a)", "deny patch(a)")),
        ("deny Read(a)", ("deny read_file(a)", "deny read_image(a)", "deny search(a)", "deny list_files(a)")),
        ("WebFetch(domain:a.org)", ("web_fetch(domain:a.org)",)),
        ("bash(git:*)", ("bash(git:*)",)),
        ("Unknown(x)", ("Unknown(x)",)),
        ("mcp__a__b(*)", ("mcp__a__b(*)",)),
    ],
)
def test_a_foreign_rule_means_native_ones(text: str, native: tuple[str, ...]) -> None:
    assert tuple(one.replace("**", "*") for one in native_rules(text)) == native


def test_the_home_folder_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    assert native_rules("Glob(~/x)") == ("list_files(/home/u/x)",)


def test_foreign_rules_in_a_file_hold_as_native_ones() -> None:
    assert rules_in_force([KeptRule("Bash(git log:*)")], CWD) == [Rule("bash", "git log *")]
    [rule] = denials_in_force([KeptRule("deny Bash(git push:*)")], CWD).rules
    assert str(rule) == "bash(git push *)"


def test_a_foreign_rule_is_accepted_by_hand_with_its_native_effect() -> None:
    desk = rule_desk({})
    assert desk.problem("Bash(make test:*)") == desk.problem("deny Bash(git push:*)") == ""
    assert "git push" in desk.effect("deny Bash(git push:*)")
    assert "can start other programs" in desk.problem("Bash(git:*)")


def test_a_profile_may_name_tools_as_others_do() -> None:
    text = "---\ntools: Read, Grep, Bash\n---\nx"
    assert parse_profile(text, Path("/p/a.md")).tools == ("read_file", "read_image", "search", "bash")
    with pytest.raises(ProfileError, match="there is no tool 'Nothing'"):
        parse_profile("---\ntools: Nothing\n---\n", Path("/p/a.md"))
