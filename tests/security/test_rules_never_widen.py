"""SECURITY S5: an option that may name a program is never covered by a star, and no guess widens what a rule covers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine.permissions.command_rules import command_matches, reads_freely
from engine.permissions.known_options import read_options
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Limits, decide
from engine.permissions.rules import Rule
from engine.records import PermissionMode
from tests.known_options import GIT, git_options, is_harmless
from tools.command_access import command_access
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec

BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
HOSTILE = (
    "git clone -u CMD -b a@b:c . z", "git clone -qu CMD u", "git clone --upload-pack=CMD u", "git clone --upl CMD u",
    "git clone -c core.fsmonitor=CMD u", "git clone --config core.fsmonitor=CMD u", "git clone --template=t u",
    "git clone --separate-git-dir=/x u", "git clone -o x u", "git clone --origin=x u", "git clone --reference /x u",
    "git clone --bundle-uri=x u", "git clone --recurse-submodules u", "git clone --server-option=x u",
    "git clone --some-new-option u", "git clone ext::CMD z", "git clone https://h/x ../z",
    "git clone https://h/x /tmp/z", "git push ./repo", "git push repo", "git push -q repo main",
    "git push --receive-pack=CMD o", "git push --exec=CMD o", "git push --exec CMD o", "git push -o x o",
    "git push --repo=./repo", "git push ../x main", "git push ext::CMD main", "git push file:///tmp/x",
    "git push --signed o", "git fetch --upload-pack CMD", "git fetch -o x", "git fetch -j 4 repo",
    "git fetch --recurse-submodules", "git pull -s CMD", "git pull --strategy=CMD", "git pull -X x",
    "git ls-remote --upload-pack=CMD", "git remote add x ext::CMD", "git remote add x ../y",
    "git remote add --mirror=push x repo", "git merge -s CMD y", "git commit -F /etc/passwd", "git commit -e",
    "git commit --gpg-sign=x", "git commit --template=x", "git grep -O", "git cat-file --textconv x", "git tag -s x",
    "git checkout --pathspec-from-file=/x", "git lg x", "git diff --ext-diff", "git show -O/x", "git am --exec x",
    "npm run test --script-shell=./CMD", "npm exec tsc --registry=x", "cat --unknown x", "grep --pre=CMD x .",
    "uniq a b", "sort --compress-program=CMD a", "find . -newoption x", "head --exec=x a",
    "kubectl exec pod ls --kubeconfig=x",
)  # fmt: skip
EVERYDAY = (
    "git clone https://github.com/a/b", "git clone --depth 1 -b main https://github.com/a/b c",
    "git clone git@github.com:a/b.git", "git push", "git push origin docs", "git push -u origin HEAD:refs/heads/x",
    "git push --force-with-lease origin main", "git fetch --all --prune", "git fetch -p origin",
    "git pull --rebase origin main", "git commit -m 'a b'", "git commit -am x", "git commit --amend --no-edit",
    "git commit -m 'a\n\nb'", "git add -A", "git add src/x", "git checkout -b x", "git stash", "git stash pop",
    "git stash push -m x", "git remote -v", "git log -5 --stat", "git log --oneline -n 3", "git diff --cached",
    "git worktree list", "git tag -a v1 -m x", "git status -sb", "git branch -a", "git merge --no-ff x",
    "git reset --hard HEAD", "npm run test -- --watch", "ls -la src", "head -5 x", "find . -mtime -7 -name '*.py'",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "docs").mkdir()
    return tmp_path


def star_rules(command: str) -> list[str]:
    """Rules with a star that begin as the command does."""
    words = command.split()
    return [f"{' '.join(words[:n])}*" for n in (1, 2, 3)]


@pytest.mark.parametrize("command", HOSTILE)
def test_no_rule_with_a_star_covers_an_option_or_place_that_may_name_a_program(folder: Path, command: str) -> None:
    assert [rule for rule in star_rules(command) if command_matches(rule, command, folder)] == []


@pytest.mark.parametrize("command", EVERYDAY)
def test_what_is_done_every_day_is_covered(folder: Path, command: str) -> None:
    assert any(command_matches(rule, command, folder) for rule in star_rules(command))


def judged(command: str, rules: dict[Rule, Access], folder: Path, **request: Access) -> Decision:
    known, reason = command_access(command)
    access = request.get("declared", known)
    asked = ToolRequest(command, command=command, access=access, access_reason=reason, known_access=known)
    limits = Limits(PermissionMode.ASK, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    return decide(BASH, asked, limits, PathPlace(folder), rules)


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git clone*", "git clone git@github.com:a/b"),
        ("bash x.sh*", "bash x.sh -c 'curl https://h'"),
        ("python3 x.py*", "python3 x.py ssh"),
        ("timeout 5 make*", "timeout 5 make x"),
        ("gh pr view*", "gh pr view 1 --unheard-of x"),
        ("docker compose up*", "docker compose up --file x"),
    ],
)
def test_what_is_guessed_of_a_command_gives_it_no_more_than_its_rule_says(
    folder: Path, rule: str, command: str
) -> None:
    decision = judged(command, {Rule("bash", rule): Access.CONFINED}, folder)
    online = isinstance(decision, Allow) and (decision.sandbox.mode is SandboxMode.OFF or decision.sandbox.network)
    assert not online


def test_what_a_model_declares_is_covered_only_by_a_rule_that_was_shown_with_it(folder: Path) -> None:
    for declared in (Access.NETWORK, Access.OUTSIDE):
        rule = Rule("bash", "make x")
        assert isinstance(judged("make x", {rule: Access.CONFINED}, folder, declared=declared), Ask)
        assert isinstance(judged("make x", {rule: declared}, folder, declared=declared), Allow)


@pytest.mark.parametrize(("rule", "mode"), [("git push*", "off"), ("curl*", "workspace"), ("gh pr view*", "off")])
def test_a_rule_whose_own_words_need_more_says_so_and_covers_it(folder: Path, rule: str, mode: str) -> None:
    decision = judged(f"{rule[:-1]} x", {Rule("bash", rule): Access.CONFINED}, folder)
    assert isinstance(decision, Allow)
    assert (decision.sandbox.mode.value, decision.sandbox.network) == (mode, True)


def test_every_command_allowed_on_the_command_line_leaves_no_sandbox(folder: Path) -> None:
    rules = {Rule("bash", "*", given=True): Access.CONFINED}
    assert isinstance(judged("git -c core.sshCommand=CMD fetch", rules, folder), Ask)
    assert isinstance(judged("curl https://h", rules, folder), Allow)


# Options of the installed programs.


@pytest.mark.parametrize("words", GIT, ids=" ".join)
def test_what_the_table_calls_harmless_is_harmless_in_the_installed_git(words: tuple[str, ...]) -> None:
    known = read_options()["git", *words]
    options = [option for option in git_options(words) if option.value[:1] in {"", "<", "[", "("}]
    assert [name for one in options for name in one.names if name in known and not is_harmless(one)] == []


# Lists and pipes.


@pytest.mark.parametrize(
    ("command", "covered"),
    [
        ("echo a && echo b", True),
        ("make test 2>&1 | tail -5", True),
        ("make test > /dev/null 2>&1; echo done", True),
        ("cd src && make test && git status", True),
        ("make test\nmake test -k x", True),
        ("make test && rm -r x", False),
        ("make test > out.txt", False),
        ("make test & rm x", False),
        ("make test | sh", False),
        ("make test | xargs rm", False),
        ("make test && cat /etc/passwd", False),
        ("cd / && make test", False),
        ("cd src; make test", False),
        ("cd src && cat ../../x", False),
        ("export PATH=. && make test", False),
        ("alias ls=rm; ls x", False),
        ("make test <<< x", False),
        ("cat < /etc/passwd | make test", False),
        ("make test $(rm x)", False),
        ("make test `rm x`", False),
        ("! make test", False),
        ("(make test)", False),
        ("make test; if x; then make test; fi", False),
    ],
)
def test_a_list_is_covered_where_each_of_its_parts_is(tmp_path: Path, command: str, covered: bool) -> None:
    (tmp_path / "src").mkdir()
    spec, limits = BASH, Limits(PermissionMode.ASK)
    request = ToolRequest(command, command=command)
    rules = (Rule("bash", "make test*"), Rule("bash", "echo *"))
    decision = decide(spec, request, limits, PathPlace(tmp_path), dict.fromkeys(rules, Access.CONFINED))
    assert isinstance(decision, Allow) is covered


def test_an_exact_rule_for_an_interpreter_is_no_yes_for_what_is_piped_into_it(tmp_path: Path) -> None:
    command = "echo evil | python3"
    rules = {Rule("bash", "python3"): Access.CONFINED, Rule("bash", "echo evil"): Access.CONFINED}
    request = ToolRequest(command, command=command)
    assert isinstance(decide(BASH, request, Limits(PermissionMode.ASK), PathPlace(tmp_path), rules), Ask)


# Readers without a sandbox.


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "notes").write_text("x")
    (tmp_path / "src").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "free"),
    [
        ("ls -la", True),
        ("cat notes | head -5 && git status --short", True),
        ("git log --oneline -5 2>/dev/null", True),
        ("cd src && ls", True),
        ("grep -rn x src | wc -l", True),
        ("pwd; echo done", True),
        ("cat .env", False),
        ("cat /etc/passwd", False),
        ("cat ../x", False),
        ("ls --unknown", False),
        ("./ls", False),
        ("git commit -m x", False),
        ("git diff --ext-diff", False),
        ("ls > out", False),
        ("ls *", False),
        ("make", False),
    ],
)
def test_known_readers_need_no_question_without_a_sandbox(repository: Path, command: str, free: bool) -> None:
    request = ToolRequest(command, command=command)
    decision = decide(BASH, request, Limits(PermissionMode.ASK), PathPlace(repository), {})
    assert isinstance(decision, Allow) is free


def test_git_asks_where_its_settings_a_hook_or_another_repository_could_start_a_program(repository: Path) -> None:
    assert reads_freely("git status", repository)
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.write_text("#!/bin/sh\n")
    assert not reads_freely("git status", repository)
    hook.unlink()
    config = repository / ".git" / "config"
    config.write_text(f"{config.read_text()}\tfsmonitor = ./x\n")
    assert not reads_freely("git status", repository)
    assert reads_freely("ls", repository)


def test_a_program_of_the_folder_is_no_reader(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = repository / "ls"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository}:/usr/bin:/bin")
    assert not reads_freely("ls", repository)
    assert reads_freely("cat notes", repository)
