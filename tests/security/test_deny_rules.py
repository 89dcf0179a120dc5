"""Rules that deny find their command wherever the shell would run it; an unknown is a doubt, never a no.

The shell itself is the oracle: commands are run for real, with a recorder in the place of git.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.permissions.command_denials import Match, match_denial
from engine.permissions.shell_parts import shell_parts
from engine.permissions.shell_programs import LONGEST

PUSH = "git push*"
DENIED = (
    "git push", "git push origin main", "/usr/bin/git push", "git -C x push", "git -c a=b --no-pager push -f",
    "cd x && git push", "cd x; git push", "true || git push", "true & git push", "git push&", "git push|cat",
    "(git push)", "{ git push; }", "! git push", "time git push", "echo $(git push)", 'echo "$(git push)"',
    "echo `git push`", 'echo "${x:-`git push`}"', "${x:-$(git push)}", "x=$(git push)", 'A=b C="d e" git push',
    "env A=b git push", "sudo -u root git push", "timeout -s KILL 5 git push", "nice -n 5 nohup git push",
    "command git push", "exec git push", "npx git push", "uv run git push", "docker exec -it web git push",
    'sh -c "git push"', "bash -lc 'cd x && git push'", "bash -c -e 'git push'", "bash -c 'bash -c \"git push\"'",
    "busybox sh -c 'git push'", "eval git push", 'eval "git push"', "eval \"git\" 'push'", "g\"\"it pu's'h",
    "\\git push", "git \\\n push", '"git" "push"', "$'git' push", "if true; then git push; fi",
    "for i in 1 2; do git push; done", "while git push; do :; done", "f() { git push; }; f",
    "function f { git push; }; f", "case x in x) git push;; esac", "[ -f x ] && git push", "trap 'git push' EXIT",
    "find . -exec git push {} \\;", "xargs -n1 git push", "ls | xargs git push", "watch git push", "ssh host git push",
    'ssh host "git push"', 'su -c "git push"', "script -c 'git push' /dev/null", "git submodule foreach 'git push'",
    "git rebase -x 'git push' main", "echo hi > f; git push > /dev/null 2>&1", "2>/dev/null git push", ">out git push",
    "cat <(git push)", "cat <<EOF\n$(git push)\nEOF", "cat <<'A' <<B\nx\nA\n$(git push)\nB",
    "cat << 'E'\nx\nE\ngit push",
    "echo $((1<<2))\ngit push", "echo $[1<<2]\ngit push", "a[1<<2]=3\ngit push", "echo hi # comment\ngit push",
    "cat <<E\nnever closed\ngit push", "~/bin/git push", "python3 -c \"import os; os.system('git push')\"",
    "python -c 'import subprocess; subprocess.run([\"git\",\"push\"])'", "perl -e 'system(\"git push\")'", "git pushx",
    "bash <<EOF\ngit push\nEOF", "time -p git push", "git -c core.fsmonitor='git push' status",
    "git -c diff.external='git push' diff",
    "git grep -O'git push' a", "git grep --open-files='git push' a", "git clone -u 'git push' . z",
    "git clone --upload-pack='git push' . z", "git fetch --upload-pack 'git push' .", "git ls-remote 'ext::git push'",
    "git config alias.z '!git push'", "GIT_SSH='git push' git fetch", "env GIT_SSH='git push' git fetch",
    "EDITOR='git push' git commit", "PS4='$(git push)'; set -x; :", "x='a[$(git push)]'; ((x))",
    "x='$(git push)'; : ${x@P}", "alias z='git push'", "tar xf t --to-command='git push'", "tar cf t -I 'git push' f",
    "tar cf t f --checkpoint=1 --checkpoint-action=exec='git push'", "sort --compress='git push' f",
    "rg --pre 'git push' a", "split --filter='git push' f", "gcc -wrapper 'git push' f", "zip z f -T -TT 'git push'",
    "install -s --strip-program='git push' f z", "ssh -o ProxyCommand='git push' h", "scp -S 'git push' f h:",
    "rsync -e 'git push' f h:", "mapfile -C 'git push' a", "complete -C 'git push' a", "vim -c '!git push'",
    "ex -sc '!git push' f", "sed 's/a/git push/e' f", "sed '1e git push' f", "ed -s f <<< '!git push'",
    "python3 - <<'E'\nimport os; os.system('git push')\nE", "perl <<'E'\nsystem('git push');\nE",
    "awk -f - <<< 'BEGIN{system(\"git push\")}'", "env 'BASH_FUNC_ls%%=() { git push; }' bash -c ls",
    "coproc X { git push; }", "coproc X (git push)", "[[ -v 'a[$(git push)]' ]]", "[[ 'a[$(git push)]' -eq 1 ]]",
    "(( 'a[$(git push)]' ))", "echo ${x['$(git push)']}", "env -S'git push'", "env --split-string='git push'",
    "time -- git push", "time -f x git push", "setpriv --no-new-privs git push", "prlimit --nofile=10 git push",
    "sqlite3 x.db <<< '.system git push'", "awk -v x='git push' 'BEGIN{system(x)}'", "/usr/lib/git-core/git-push",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push", "less +'!git push' f", "dc -e '!git push'",
    "env -vS'git push'", "env -Sgit push", "env -i --split='A=1 git' push",
    "socat - EXEC:'git push'", "python3 -c 'import os; os.system(\"git \"+\"push\")'",
)  # fmt: skip
DOUBTFUL = (
    "$G push", '"$G" push', "git $X", 'git "$X"', "git $(echo push)", "$(echo git) push", 'eval "$X"', "bash",
    "curl x | sh", "sh -s", "ls | bash -", "bash <<EOF\nx\nEOF", "bash <(curl x)", "bash /dev/stdin",
    'bash -c "$X"', "git pus[h]", "{git,push}", "git {push,x}", "/usr/bin/gi? push", "$'\\x67it' push",
    "git -c alias.x=push x", 'git -c "$X" x', "echo push | xargs git", "echo 'unclosed", "git\u00a0push",
    "true\u2003git push", "echo " + "x" * LONGEST, "$(" * 100, "$(case x in x) true;; esac)", "sudo " * 200 + "ls",
    "sh -c " * 20 + '"$X"', "BASH_ENV=x bash -c :", "source <(curl x)", 'sort --compress-program="$X" f',
    "tar xf t --to-command=./gi? ", "alias z=$X",
    "printf -v 'a[$(gi$@t push)]' x", "x='a[$($X push)]'; ((x))", "alias z=$'gi\\x74 push'", 'GIT_SSH="$X" git fetch',
    "hash -p /usr/bin/git foo; foo push", "BASH_CMDS[foo]=/usr/bin/git; foo push",
    "BASH_ALIASES[foo]='git push'\nfoo", "alias g=git\ng push", "ln -s /usr/bin/git x; ./x push",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0=push git z", "git --config-env=alias.z=X z",
    "git config alias.z push; git z", "make --eval='x: ; git push' x", "make -f - <<< 'x: ; git push'",
    "make -f /dev/stdin <<< $'x:\\n\\tgit push'", "hyperfine 'git push'", "newtool --deep git push",
    "newtool -c 'true; git push'", "hash -p/usr/bin/git foo; foo push", "printf -v 'BASH_CMDS[f]' /usr/bin/git; f push",
    "echo \"git push\" > notes; make test", "cp a b; ./b push",
)  # fmt: skip
HARMLESS = (
    "git status", "git log --grep push", 'git commit -m "git push later"', "echo git push", 'echo "git push"',
    'grep -rn "git push" .', "ls $DIR", 'git commit -m "$MSG"', 'rm -rf "$X"', "for f in *.py; do echo $f; done",
    "cat <<'EOF' > f\ngit push\nEOF", "python -c \"print('it''s')\"", "pip install git", "make push", "git stash push",
    "git diff HEAD~1 -- a.py", "awk '{print $1}' x", 'sed -i "s/a b/$X/" f', "find \"$DIR\" -name '*.py'",
    "bash script.sh", './run.sh "$X"', "git -C x status", "cat a | sort | uniq -c", 'npm install "$PKG"',
    'test -f "$X" && echo y', "export A=$B", "[[ $a == b* ]] && ls", "bash --version", "pytest -k 'git and push'",
    'nohup python x.py "$ARG"', 'timeout 60 uv run pytest -k "a b"', 'sudo make CC="$CC"', "sudo timeout 5 ls $X",
    "# git push", "echo '$(git push)'", "echo \\$(true)", "cat <<'EOF'\n$(git push)\nEOF", "make -j4 CC=gcc",
    'GIT_AUTHOR_NAME="$X" git commit -m "git push later"', "git log -c 'git push'",
    ". venv/bin/activate", 'source "$HOME/x.sh"', "ssh -o BatchMode=yes h ls", "sort -u f", "tar czf t.tgz f",
    "vim -c 'set nu' f",
    "cat <<E | python3 x.py\ngit push\nE", "alias ll='ls -l'", 'MSG="git push later"; echo "$MSG"',
    "git commit -c HEAD",
    "docker rm x", "newtool push git", "newtool \"git and push\"", "[[ $a == \"git push\" ]]",
    "gh pr create --body \"then git push\"",
    "git commit -F - <<'E'\nthen git push\nE", "kubectl apply -f - <<'E'\na: b\nE", "alias ll='ls -l'; ll push",
    "git config alias.co checkout", "GIT_CONFIG_GLOBAL=/dev/null git status",
    "time -p make push", "echo \"${x:-'a'}\"", "git-lfs push", "awk -v n=3 'NR==n' f",
)  # fmt: skip


@pytest.mark.parametrize("command", DENIED)
def test_a_denied_command_is_found_in_every_part_of_a_line(command: str) -> None:
    assert match_denial(PUSH, command) == (Match.YES, "")


@pytest.mark.parametrize("command", DOUBTFUL)
def test_a_command_that_cannot_be_told_is_a_doubt_with_a_reason(command: str) -> None:
    match, reason = match_denial(PUSH, command)
    assert match is Match.MAYBE
    assert reason


@pytest.mark.parametrize("command", HARMLESS)
def test_everyday_commands_are_neither_denied_nor_doubted(command: str) -> None:
    assert match_denial(PUSH, command) == (Match.NO, "")


@pytest.mark.parametrize(
    ("pattern", "command", "expected"),
    [
        ("*", "anything", Match.YES),
        ("git push", "git push", Match.YES),
        ("git push", "cd x && git push", Match.YES),
        ("git push", "git push origin", Match.NO),
        ("git push", "git push $X", Match.MAYBE),
        ("git push *", "git push origin", Match.YES),
        ("git push *", "git push", Match.YES),
        ("git push *", "git pushx", Match.MAYBE),
        ("npm run *", "npm runx", Match.NO),
        ("git pu*", "git push", Match.YES),
        ("rm*", "rmdir x", Match.YES),
        ("rm *", "rmdir x", Match.NO),
        ("rm -rf /", "sudo rm -rf /", Match.YES),
        ("rm -rf /", 'rm -rf "$X"', Match.MAYBE),
        ("rm -rf /", "rm -rf ./build", Match.NO),
        ("*curl*", "true; wget x | curl y", Match.YES),
        ("*--force*", "git push --force", Match.YES),
        ("git * --force", "git push --force", Match.YES),
        ("git * --force", "git push", Match.NO),
        ("git * --force", "git push $X", Match.MAYBE),
        ("npm publish*", "npm --prefix x publish", Match.YES),
        ("docker *", "docker run x", Match.YES),
        ("kubectl delete*", "kubectl -n prod delete pod x", Match.YES),
        ("python *", "python3.11 x.py", Match.YES),
        ("./deploy.sh*", "./deploy.sh now", Match.YES),
        ('git commit -m "x y"', "git commit -m 'x y'", Match.YES),
        ("a && b", "a && b", Match.YES),
        ("echo *[*]", "echo x", Match.NO),
        ("echo x[*]", "echo 'x*'", Match.YES),
        ("[", "[ -f x ]", Match.NO),
    ],
)
def test_a_pattern_means_what_the_documents_say(pattern: str, command: str, expected: Match) -> None:
    assert match_denial(pattern, command)[0] is expected


WRAPPERS: tuple[Callable[[str], str], ...] = (
    lambda c: f"true && {c}",
    lambda c: f"false || {{ {c}\n}}",
    lambda c: f"( {c}\n)",
    lambda c: f"echo \"$( {c}\n)\"",
    lambda c: f"x=$( {c}\n); echo $x",
    lambda c: f"if true; then {c}\nfi",
    lambda c: f"for i in a; do {c}\ndone",
    lambda c: f"f() {{ {c}\n}}; f",
    lambda c: f"cat <<E\n$( {c}\n)\nE\n",
    lambda c: f"cat <<'E'\nx '\nE\n{c}",
    lambda c: f"bash --norc -c {quote(c)}",
    lambda c: f"bash -ec {quote(c)}",
    lambda c: f"eval {quote(c)}",
    lambda c: f"env A=1 bash -c {quote(c)}",
    lambda c: f"echo \"${{nothing:-$( {c}\n)}}\"",
    lambda c: f": # it's a comment\n{c}",
    lambda c: f"echo $((1<<2))\n{c}",
    lambda c: f"true 2>&1 >/dev/null; {c}",
    lambda c: f"cat <( {c}\n)",
    lambda c: f"case y in x) true;; y) {c}\n;; esac",
    lambda c: f"! {c}",
    lambda c: f"trap {quote(c)} EXIT",
    lambda c: f"printf x | xargs -I% bash -c {quote(c)}",
)  # fmt: skip
BASES = ("git push", "g'i't pu\"sh\"", "\\git pu\\\nsh", "A=1 git -c x.y=z push", "$'git' push x", "G=git; $G push",
         "P=push; git $P", "{git,push}", "command git push", "nice git push")  # fmt: skip


_LINE = re.compile(r"(?:-c \S+ )*push")


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program git that writes down its arguments."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "git"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{folder}/log\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def pushes(recorder: Path, command: str) -> bool:
    """True if bash runs git push."""
    log = recorder / "log"
    log.unlink(missing_ok=True)
    environment = {"PATH": f"{recorder}:{os.environ['PATH']}", "HOME": str(recorder)}
    subprocess.run(
        ["bash", "-c", command], env=environment, cwd=recorder, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=20, check=False,
    )  # fmt: skip
    return log.exists() and any(_LINE.match(line) for line in log.read_text().splitlines())


@given(st.sampled_from(BASES), st.lists(st.sampled_from(WRAPPERS), max_size=3))
def test_no_nesting_of_the_shell_hides_a_denied_command(
    recorder: Path, base: str, wrappers: list[Callable[[str], str]]
) -> None:
    command = reduce(lambda inner, wrap: wrap(inner), wrappers, base)
    assume(pushes(recorder, command))  # a here-document in another of the same name ends it
    assert match_denial(PUSH, command)[0] is not Match.NO


PIECES = ("git", "push", " ", " ", "\n", ";", "&&", "|", "(", ")", "{ ", "}", "'", '"', "\\", "$(", "`", "#", "<<E\n",
          "E\n", "<(", ">x ", "2>&1", "$'", "${a:-", "eval ", "sh -c ", "if ", "then ", "fi", "!", "[", "a=", "&",
          "<<<")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_soup_of_shell_signs_hides_a_denied_command(recorder: Path, command: str) -> None:
    if pushes(recorder, command):
        assert match_denial(PUSH, command)[0] is not Match.NO


@given(st.text(max_size=300))
def test_any_text_is_taken_apart_without_an_error(text: str) -> None:
    shell_parts(text)
    assert match_denial(PUSH, text)[0] in Match
    assert match_denial(text, text)[0] in {Match.YES, Match.MAYBE} or not text.strip()


@pytest.mark.parametrize(
    "unit",
    ["`", "((", "<<A\n", "<<A <<B\n", "a<(b)", "'", '"', "${", "$(", "\\", "$'a'", "sudo ", "xargs 'a b' ",
     "env 'a b' ", "python 'a b' ", "git -c a ", "sh -c 'a b' ", "a=b ", "#\n", "[", "{", "[[ ", "$x", ">", "&>",
     "new git ", "new 'git push' ", "alias a=a; a ", "cp a a; a ", "${x['$(", "make - <<< a; ", "env -Sa\\ ",
    "env -Sa env "],
)  # fmt: skip
def test_a_line_of_any_length_costs_time_in_proportion(unit: str) -> None:
    line = unit * (LONGEST // len(unit))
    assert len(shell_parts(line).commands) <= len(line)
    assert match_denial(PUSH, line)[0] in Match
