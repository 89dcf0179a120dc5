"""A look that reaches its bound before it has seen all fails closed (docs/security.md, "Looks that are cut short")."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.permissions.command_denials import MOST_OPTIONS, Match, match_denial
from engine.permissions.denials import denials_in_force
from engine.permissions.hosts import HostRules, hosts_in
from engine.permissions.rules import KeptRule
from engine.permissions.shell_programs import MOST_WORDS, programs_in_code
from engine.permissions.unreadable import DeniedFiles
from tests.support.git_repositories import empty_repository
from tests.support.sandboxes import sandbox
from tools.contract import PathOrder
from tools.process import git_control, programs
from tools.process import sandbox as sandbox_layout
from tools.process.private_home import key_places


def test_options_beyond_the_bound_may_hide_the_words_of_a_rule() -> None:
    assert match_denial("docker push*", f"docker {'-a ' * MOST_OPTIONS} push x")[0] is Match.MAYBE
    assert match_denial("docker push*", f"docker {'-a ' * 5} pull x")[0] is Match.NO


def test_words_of_code_beyond_the_bound_are_a_doubt() -> None:
    assert programs_in_code(f"run({'a ' * MOST_WORDS}git push)").doubt
    assert not programs_in_code("run(a git push)").doubt


def test_every_host_of_a_rule_that_denies_counts() -> None:
    denied_hosts = hosts_in(",".join(f"h{n}.example.com" for n in range(100)))
    assert HostRules(("*",), denied_hosts).denies("h99.example.com", 443)


def test_a_rule_too_long_to_be_looked_for_leaves_the_look_unfinished(tmp_path: Path) -> None:
    denials = denials_in_force([KeptRule(f"deny read_file({'a' * 5_000})", 0.0, "", "rules.toml")], tmp_path)
    assert not DeniedFiles().look(denials, tmp_path).is_whole


def test_of_too_many_programs_one_counts_as_an_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_FACTS", 2)
    facts = programs.program_facts(["ls", "cat", "wc"], tmp_path, PathOrder.LAST)
    assert [fact.is_agents for fact in facts] == [True, False, False]
    assert facts[0].other


def test_of_too_many_modules_and_worktrees_the_folder_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = empty_repository(tmp_path.resolve()) / ".git"
    for name in ("modules/a", "modules/b/c", "modules/d", "worktrees/a", "worktrees/b", "worktrees/c"):
        (git / name).mkdir(parents=True)
        (git / name / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    assert not {git / "modules", git / "worktrees"} & {one.path for one in git_control.git_control(git.parent).guarded}
    monkeypatch.setattr(git_control, "MOST_MODULES", 2)
    assert {git / "modules", git / "worktrees"} <= {one.path for one in git_control.git_control(git.parent).guarded}


def test_a_key_is_found_among_any_number_of_files(tmp_path: Path) -> None:
    for n in range(10_500):
        (tmp_path / f"a{n}").touch()
    for name in (".env", "secrets.json", "id_ed25519"):
        (tmp_path / name).touch()
    assert {path.name for path in key_places({}, tmp_path.resolve())} == {".env", "secrets.json", "id_ed25519"}


@pytest.mark.parametrize("bound", ["MOST_READ", "MOST_INCLUDES"])
async def test_beside_a_configuration_too_large_to_be_looked_at_a_command_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    work = empty_repository(tmp_path)
    with (work / ".git/config").open("a", encoding="ascii") as file:
        file.write(f"# {'x' * 1_000}\n[include]\n\tpath = ../one\n")
    (work / "one").write_text("[include]\n\tpath = two\n", "ascii")
    (work / "two").write_text("[include]\n\tpath = one\n[core]\n\thooksPath = .hooks\n", "ascii")
    assert work / ".hooks" in {one.path for one in git_control.git_control(work).guarded}
    monkeypatch.setattr(git_control, bound, 1)
    async with sandbox(work) as box:
        result = await box.sh("mkdir .hooks; echo bad > new; cat one")
    assert not (work / "new").exists()
    assert not (work / ".hooks").exists()
    assert result.endswith("[include]\n\tpath = two\n")


async def test_of_many_repositories_below_a_workspace_each_is_kept_somehow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a/one", "b/two", "c/three", "d/four")
    for name in names:
        empty_repository(tmp_path / name)
    monkeypatch.setattr(sandbox_layout, "MOST_NESTED", 1)
    monkeypatch.setattr(sandbox_layout, "MOST_CLOSED", 1)
    async with sandbox(tmp_path) as box:
        await box.sh(f"for f in {' '.join(names)}; do cd {tmp_path}/$f; touch .git/config .git/x new; done")
    made = ({path.name for path in (tmp_path / name).rglob("*")} & {"config", "x", "new"} for name in names)
    assert sorted(map(sorted, made)) == [[], [], ["new"], ["new", "x"]]
