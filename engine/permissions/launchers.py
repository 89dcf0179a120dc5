"""Programs whose next words name the program to run: a rule with `*` must include that."""

from __future__ import annotations

import re
from typing import Final

_INTERPRETERS = """
    sh bash rbash zsh dash ash fish csh tcsh ksh mksh pwsh powershell nu xonsh python pythonw pypy ipython perl
    ruby jruby irb node nodejs deno bun php lua luajit tclsh wish expect rscript r julia ghci runghc java jshell
    groovy scala kotlin elixir erl escript guile racket sbcl clisp emacs osascript tsx ts-node gjs qjs octave
    swift crystal nim raku janet jq gdb lldb bc dc
"""
INTERPRETERS: Final = frozenset(_INTERPRETERS.split())
"""Interpreters by stem: `python3.11` is `python`. The word behind them must be a script."""
_EXACT = """
    sed gsed awk gawk mawk nawk xargs parallel watch script ssh scp sftp rsync su runuser at batch crontab vi
    vim nvim view ex ed nano less more man tar bsdtar gtar cpio zip tmux screen flock unshare nsenter chroot
    bwrap systemd-run strace ltrace perf valgrind fd fdfind entr sqlite3 psql mysql m4 dd socat nc ncat split
    csplit info dialog start-stop-daemon setarch taskset eval exec source . trap alias let declare typeset local
    export readonly unset printf test read mapfile readarray enable hash bind complete compgen builtin coproc if
    then else elif fi for while until do done case esac select function in wait shopt set getopts pdb timeit
    trace cprofile profile runpy code cython nix-shell
"""
EXACT: Final = frozenset(_EXACT.split())
"""Programs, and words of the shell, that start or evaluate any of their words."""
TRANSPARENT: Final = {"timeout": 1, "nice": 0, "nohup": 0, "time": 0, "setsid": 0}
"""Programs that only change how the one behind them runs, and the words between; nothing else is looked up by them."""
LAUNCHERS: Final[dict[tuple[str, ...], int]] = {
    **{(name,): words for name, words in TRANSPARENT.items()},
    **{(name,): 0 for name in ("env", "command", "sudo", "doas", "npx", "bunx", "uvx", "busybox", "toybox", "ionice")},
    **{(name,): 0 for name in ("stdbuf", "chrt", "fakeroot", "dbus-run-session", "xvfb-run")},
    **{(name, "run"): 0 for name in ("uv", "npm", "pnpm", "yarn", "bun", "deno", "poetry", "pipx", "pdm", "hatch")},
    **{(name, "run"): 0 for name in ("pipenv", "conda", "mamba", "rye", "pixi", "nix", "go", "docker", "podman")},
    **{(name, "exec"): 0 for name in ("npm", "pnpm", "yarn", "bundle", "rbenv", "pyenv", "mise", "asdf")},
    **{(name, "exec"): 1 for name in ("docker", "podman", "kubectl", "direnv")},
    **{(name, "dlx"): 0 for name in ("pnpm", "yarn")},
    **{(name, "x"): 0 for name in ("npm", "bun", "mise")},
    **{("docker", "compose", name): 1 for name in ("run", "exec")},
    ("uv", "tool", "run"): 0,
    ("git",): 0,
}
"""Words that start the program behind them, and the number of words between."""
SCRIPTS: Final = frozenset({("npm", "run"), ("pnpm", "run")})
"""Launchers whose next word names a script of the project, and no program of that name: `npm run test`."""
INTERSPERSED: Final = frozenset({"npm", "kubectl", "oc"})
"""Launchers that read options up to `--`, also behind the program that they start: `npm run test --script-shell=x`."""
GIT_EXACT: Final = frozenset(
    {"config", "bisect", "filter-branch", "submodule", "difftool", "mergetool", "daemon", "help", "instaweb", "hook"}
    | {"web--browse", "for-each-repo", "rebase", "send-email", "format-patch", "archive", "var", "credential", "p4"}
)
"""Commands of git that start programs, or write to a given place."""
LONGEST_NAME: Final = 100
"""Characters of a program's name up to which a version is looked for: the time grows with their square."""
_VERSION: Final = re.compile(r"[-_.]?\d[\w.]*(?:-\w+)?$")


def stem(program: str) -> str:
    """Name of a program without folder, version and ending: `/usr/bin/python3.11` gives `python`."""
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    if name in INTERPRETERS or len(name) > LONGEST_NAME:
        return name
    return _VERSION.sub("", name) or name


def skip_launchers(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words started by launchers in front; `words` where there are none."""
    while (found := _launcher(words)) and found != ("git",):
        inner = words[len(found) + LAUNCHERS[found] :]
        if not inner or inner[0].startswith("-") or "=" in inner[0]:
            return words
        words = inner
    return words


def own_option(words: tuple[str, ...]) -> str:
    """The first option among the words of a started program that its launcher takes for its own; empty for none."""
    if len(skip_launchers(words)) == len(words) or words[0].rpartition("/")[2] not in INTERSPERSED:
        return ""
    before = words[1 : words.index("--")] if "--" in words else words[1:]
    return next((word for word in before if word.startswith("-")), "")


def is_transparent(words: tuple[str, ...]) -> bool:
    """True if only programs that change how it runs precede the program that `words` start."""
    inner = skip_launchers(words)
    return all(word in TRANSPARENT or word[:1].isdigit() for word in words[: len(words) - len(inner)])


def why_no_prefix(words: tuple[str, ...]) -> str:
    """Reason why no rule may allow every command that begins with `words`, in one sentence; empty where one may."""
    inner = skip_launchers(words)
    name = inner[0].rpartition("/")[2]
    if (found := _launcher(inner)) and words[: len(words) - len(inner)] not in SCRIPTS:
        return _why_launcher(inner, found)
    if _begins_launcher(inner):
        return f"“{' '.join(inner)}” has commands that can start any program; name the command too."
    if words[: len(words) - len(inner)] in SCRIPTS:
        return ""
    if name.lower() in EXACT:
        return f"“{name}” can start other programs from its arguments; write the whole command."
    if stem(name) in INTERPRETERS:
        return _why_interpreter(name, inner[1:])
    return ""


def _why_launcher(words: tuple[str, ...], found: tuple[str, ...]) -> str:
    said = " ".join(found)
    if found == ("git",):
        if len(words) == 1:
            return "“git” can start other programs; name its command too, such as git log*."
        if words[1].startswith("-"):
            return "An option between git and its command changes what runs; write the whole command."
        if words[1] in GIT_EXACT:
            return f"“git {words[1]}” can start other programs; write the whole command."
        return ""
    return f"“{said}” can start any program; name that program right after it, or write the whole command."


def _why_interpreter(name: str, rest: tuple[str, ...]) -> str:
    if rest[:1] == ("-m",) and rest[1:] and not rest[1].startswith("-"):
        return why_no_prefix(rest[1:])
    if rest and not rest[0].startswith("-") and not (name in {"deno", "bun"} and rest[0] in {"run", "eval", "x"}):
        return ""
    return f"“{name}” can run any code; name the script right after it, or write the whole command."


def _launcher(words: tuple[str, ...]) -> tuple[str, ...]:
    """The longest launcher that `words` begin with; none for a program that is not one."""
    named = (words[0].rpartition("/")[2], *words[1:3]) if words else ()
    return next((found for n in (3, 2, 1) if (found := named[:n]) in LAUNCHERS and len(found) == n), ())


def _begins_launcher(words: tuple[str, ...]) -> bool:
    """True where one more word would make it a launcher: `uv` may become `uv run`."""
    named = (words[0].rpartition("/")[2], *words[1:])
    return any(launcher[: len(named)] == named for launcher in LAUNCHERS if len(launcher) > len(named))
