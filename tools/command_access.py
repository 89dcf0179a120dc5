"""Files that a command line reads or writes, and hosts that it is known to reach, from tables of known programs.

Hosts are for the question about a command, never for a limit: a package manager's registry is offered here and allowed
nowhere (docs/decisions/network.md).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from msgspec import Struct

from tools.contract import Access
from tools.web.public_addresses import host_and_port

NEEDS_NETWORK: Final = "needs the network"
NEEDS_PORT: Final = "listens on a port for your browser or other programs"
NEEDS_CREDENTIALS: Final = "needs the network and your stored credentials, which the sandbox hides"
NEEDS_KEYS: Final = "needs keys that the sandbox hides"
NEEDS_SSH: Final = "needs the network and your SSH keys, which the sandbox hides"
NEEDS_DAEMON: Final = "uses a service outside the sandbox"
NEEDS_SYSTEM: Final = "changes this machine outside the working directory"
NEEDS_PROCESSES: Final = "acts on processes outside the sandbox"
NEEDS_GIT_CONTROL: Final = "changes git's configuration, which the sandbox protects"
NEEDS_DESKTOP: Final = "opens a program on your desktop"
NEEDS_OWN_SANDBOX: Final = "starts a browser, which cannot set up its own sandbox inside this one"


def _subcommands(text: str) -> dict[str, frozenset[str]]:
    """Read lines of `program: word word …`."""
    lines = (line.partition(":") for line in text.strip().splitlines())
    return {name.strip(): frozenset(words.split()) for name, _, words in lines}


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


NETWORK_PROGRAMS: Final = _split_names("""
    curl wget http https xh aria2c nc ncat netcat telnet ping ping6 dig nslookup host traceroute tracepath whois
    ftp lftp mtr iperf3 socat wrk ab hey yt-dlp npx bunx uvx pnpx
""")
DIRECT_PROGRAMS: Final = _split_names("""
    nc ncat netcat telnet ping ping6 dig nslookup host traceroute tracepath whois ftp lftp mtr iperf3 socat
""")
"""Programs of these that speak to hosts themselves, and cannot go through a proxy."""
SERVER_PROGRAMS: Final = _split_names("""
    uvicorn gunicorn hypercorn daphne waitress-serve vite http-server live-server serve browser-sync nodemon
    webpack-dev-server json-server ngrok cloudflared caddy nginx
""")
OUTSIDE_PROGRAMS: Final = {
    name: reason
    for reason, names in (
        (NEEDS_SSH, "ssh scp sftp mosh autossh sshfs ssh-copy-id"),
        (
            NEEDS_CREDENTIALS,
            "gh glab hub aws gcloud gsutil az doctl heroku vercel netlify flyctl fly wrangler kubectl helm terraform"
            " tofu pulumi ansible ansible-playbook twine op vault sops firebase supabase stripe snyk",
        ),
        (NEEDS_KEYS, "gpg gpg2 pass age ssh-add ssh-keygen security secret-tool keyring"),
        (
            NEEDS_DAEMON,
            "docker docker-compose podman podman-compose nerdctl buildah skopeo colima minikube kind k3d vagrant"
            " virsh systemctl service loginctl busctl dbus-send gdbus psql pg_dump pg_restore createdb dropdb mysql"
            " mysqldump mariadb mongosh redis-cli tmux screen at batch emacsclient adb",
        ),
        (
            NEEDS_SYSTEM,
            "sudo doas su pkexec apt apt-get aptitude dpkg dnf yum rpm pacman yay zypper apk snap flatpak brew port"
            " nix-env useradd usermod passwd visudo mount umount modprobe sysctl ufw iptables crontab chsh rustup nvm"
            " pyenv rbenv asdf mise sdk volta fnm pipx corepack update-alternatives",
        ),
        (
            NEEDS_PROCESSES,
            "pkill killall ps pgrep top htop pstree lsof fuser ss netstat strace gdb lldb py-spy perf",
        ),
        (
            NEEDS_DESKTOP,
            "xdg-open open code cursor subl idea pycharm xclip xsel wl-copy wl-paste pbcopy pbpaste notify-send",
        ),
        (NEEDS_OWN_SANDBOX, "playwright cypress chromium chromium-browser google-chrome firefox"),
    )
    for name in names.split()
}

NETWORK_SUBCOMMANDS: Final = _subcommands("""
    uv: sync add lock
    poetry: install add update lock self
    pdm: install add update lock sync
    pipenv: install update lock sync
    hatch: dep
    conda: install create update search env
    npm: install i ci add update up audit outdated view info exec create init search
    pnpm: install i add update up audit outdated dlx create fetch
    yarn: install add upgrade up audit dlx create outdated
    bun: install i add update x create
    deno: install add cache
    cargo: fetch update add search audit outdated generate-lockfile
    go: get
    gem: fetch search
    bundle: install update add outdated
    composer: install update require create-project
    dotnet: restore add nuget
    mix: deps.get deps.update
    svn: checkout co update up commit ci
    hg: clone pull push
""")
"""Sub-commands that fetch; programs of these names are confined otherwise."""
BARE_NETWORK: Final = frozenset({"yarn"})
"""Programs that fetch when they are called without a sub-command."""
SERVER_SUBCOMMANDS: Final = _subcommands("""
    flask: run
    fastapi: dev run
    rails: s server
    next: dev start
    nuxt: dev preview
    astro: dev preview
    ng: serve
    vue-cli-service: serve
    webpack: serve
    hugo: server serve
    jekyll: serve s
    mkdocs: serve
    storybook: dev
    streamlit: run
    jupyter: lab notebook server
    phoenix: serve
    manage.py: runserver
""")
SERVER_SCRIPTS: Final = _split_names("dev start serve server preview watch storybook")
"""Names of package scripts that serve by convention: `npm run dev`, `yarn start`."""
PACKAGE_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
SERVER_MODULES: Final = _split_names("http.server uvicorn gunicorn flask jupyter streamlit")
"""Modules that serve when they are run with `python -m`."""

OUTSIDE_SUBCOMMANDS: Final = {
    "cargo": {"install": NEEDS_SYSTEM, "uninstall": NEEDS_SYSTEM, "login": NEEDS_CREDENTIALS},
    "go": {"install": NEEDS_SYSTEM, "env": NEEDS_SYSTEM},
    "gem": {"install": NEEDS_SYSTEM, "update": NEEDS_SYSTEM, "push": NEEDS_CREDENTIALS},
    "uv": {"tool": NEEDS_SYSTEM, "python": NEEDS_SYSTEM, "publish": NEEDS_CREDENTIALS, "self": NEEDS_SYSTEM},
    "npm": {"login": NEEDS_CREDENTIALS, "publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM},
    "pnpm": {"publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM},
    "yarn": {"publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM, "global": NEEDS_SYSTEM},
    "poetry": {"publish": NEEDS_CREDENTIALS},
    "pre-commit": {"install": NEEDS_GIT_CONTROL, "uninstall": NEEDS_GIT_CONTROL},
    "husky": {"install": NEEDS_GIT_CONTROL, "init": NEEDS_GIT_CONTROL},
    "lefthook": {"install": NEEDS_GIT_CONTROL},
}
GIT_NETWORK: Final = frozenset({"fetch", "pull", "push", "ls-remote", "send-email"})
"""Sub-commands of git that speak to a remote with the user's credentials."""
GIT_CONTROL_READERS: Final = _subcommands("""
    config: --get --get-all --list -l get list --get-regexp --show-origin
    remote: -v --verbose get-url
    worktree: list
    submodule: status summary foreach
    lfs: ls-files status env
    init:
    maintenance:
""")
"""Sub-commands of git that write its configuration, and the first words behind them that only read."""
GIT_BARE_READERS: Final = frozenset({"remote", "submodule"})
"""Sub-commands of `git` that read only when no argument follows."""
WITH_SUBCOMMANDS: Final = {*NETWORK_SUBCOMMANDS, *SERVER_SUBCOMMANDS, *OUTSIDE_SUBCOMMANDS} | _split_names(
    "git docker podman kubectl helm gh systemctl apt apt-get brew aws gcloud"
)
"""Programs whose second word selects their action."""
GLOBAL_FLAGS: Final = frozenset({"-g", "--global", "--location=global", "--user", "--system"})
"""Flags that make a package manager install for the whole user or machine."""


Need: TypeAlias = tuple[Access, str]

CONFINED: Final[Need] = (Access.CONFINED, "")
RANKS: Final = {Access.CONFINED: 0, Access.NETWORK: 1, Access.OUTSIDE: 2}
MOST_CHARACTERS: Final = 8_000
"""Length of a command beyond which it is not looked into."""
DEEPEST: Final = 4
"""Levels of `bash -c` and `$(…)` that are looked into."""
SEPARATORS: Final = frozenset(";&|()\n")
SUBSTITUTION: Final = re.compile(r"\$\(([^()]{1,2000})\)|`([^`]{1,2000})`")
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]{1,20}")
PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
PIP: Final = re.compile(r"pip[\d.]*")
SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
KEYWORDS: Final = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"})
PREFIXES: Final = {
    "env": 0,
    "command": 0,
    "exec": 0,
    "nohup": 0,
    "setsid": 0,
    "nice": 0,
    "ionice": 0,
    "stdbuf": 0,
    "xargs": 0,
    "timeout": 1,
}
"""Programs that start another one, and the number of their own words before it."""
RUNNERS: Final = frozenset({"uv", "poetry", "pdm", "pipenv", "hatch", "bundle", "npm", "pnpm", "yarn"})
"""Programs whose `run` or `exec` starts another one."""
REMOTE_URL: Final = re.compile(r"(?:ssh|git\+ssh)://|^[\w.-]+@[\w.-]+:")
HERE_DOCUMENT: Final = re.compile(r"<<-?[ \t]*[\"']?(\w+)")
ACTIVATED: Final = re.compile(r"(?:^|[;&|\s])(?:\.|source)\s+\S*/bin/activate\b")


def command_access(command: str) -> Need:
    """Return the widest access that a part of `command` is known to need, and the reason as one sentence."""
    if len(command) > MOST_CHARACTERS:
        return CONFINED
    in_environment = ACTIVATED.search(command) is not None
    return max((_name_need(words, in_environment) for words in programs_in(command)), key=_rank, default=CONFINED)


def programs_in(command: str) -> Iterator[list[str]]:
    """The words of each program that a command is seen to start, from its name on."""
    if len(command) <= MOST_CHARACTERS:
        yield from _programs(_without_here_documents(command), DEEPEST)


def _programs(command: str, depth: int) -> Iterator[list[str]]:
    if not depth:
        return
    for words in _simple_commands(command):
        if script := _shell_script(words):
            yield from _programs(script, depth - 1)
        elif words:
            yield words
    for found in SUBSTITUTION.finditer(command):
        yield from _programs(found[1] or found[2], depth - 1)


def _without_here_documents(command: str) -> str:
    """The command without the lines that only feed a program's standard input."""
    kept: list[str] = []
    end = ""
    for line in command.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        found = HERE_DOCUMENT.search(line)
        end = found[1] if found else ""
    return "\n".join(kept)


def _rank(need: Need) -> int:
    return RANKS[need[0]]


def _name_need(words: Sequence[str], in_environment: bool) -> Need:
    access, reason = _need(words, in_environment)
    return (access, f"{_program(words)} {reason}") if reason else CONFINED


def _program(words: Sequence[str]) -> str:
    """The name a question gives the program, with its sub-command where it has some."""
    name = PurePosixPath(words[0]).name
    has_subcommands = name in WITH_SUBCOMMANDS or PIP.fullmatch(name) is not None
    second = words[1] if has_subcommands and len(words) > 1 else ""
    return f"{name} {second}" if SUBCOMMAND.fullmatch(second) else name


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command; an unbalanced quote ends the last one."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="".join(sorted(SEPARATORS)))
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    commands: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and set(token) <= SEPARATORS:
                commands.append([])
            else:
                commands[-1].append(token)
    except ValueError:
        pass
    return [_without_prefixes(words) for words in commands]


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """The words from the program on that really works: without assignments, keywords and wrappers."""
    rest = list(words)
    while rest:
        name = rest[0]
        if name in KEYWORDS or ASSIGNMENT.match(name):
            rest = rest[1:]
        elif name in PREFIXES:
            own = PREFIXES[name]
            rest = rest[1:]
            while rest and (rest[0].startswith("-") or ASSIGNMENT.match(rest[0])):
                rest = rest[1:]
            rest = rest[own:]
        elif name in RUNNERS and len(rest) > 2 and rest[1] in {"run", "exec"} and name not in PACKAGE_MANAGERS:
            rest = rest[2:]
        else:
            break
    return rest


def _shell_script(words: Sequence[str]) -> str:
    """The text behind `bash -c`; empty for anything else."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return ""
    flag = next((index for index, word in enumerate(words) if re.fullmatch(r"-\w*c", word)), 0)
    return words[flag + 1] if flag and flag + 1 < len(words) else ""


def _need(words: Sequence[str], in_environment: bool) -> Need:
    name, rest = PurePosixPath(words[0]).name, [word for word in words[1:] if word]
    if PYTHON.fullmatch(name):
        return _python(words[0], rest, in_environment)
    if PIP.fullmatch(name):
        return _pip(words[0], rest, in_environment)
    if name in OWN_RULES:
        return OWN_RULES[name](rest)
    if reason := OUTSIDE_PROGRAMS.get(name):
        return (Access.OUTSIDE, reason)
    if name in NETWORK_PROGRAMS:
        return (Access.NETWORK, NEEDS_NETWORK)
    if name in SERVER_PROGRAMS:
        return (Access.NETWORK, NEEDS_PORT)
    return _by_subcommand(name, rest)


def _by_subcommand(name: str, rest: Sequence[str]) -> Need:
    words = [word for word in rest if not word.startswith("-")]
    first = words[0] if words else ""
    if reason := OUTSIDE_SUBCOMMANDS.get(name, {}).get(first):
        return (Access.OUTSIDE, reason)
    if first in SERVER_SUBCOMMANDS.get(name, ()):
        return (Access.NETWORK, NEEDS_PORT)
    fetches = first in NETWORK_SUBCOMMANDS.get(name, ()) or (not rest and name in BARE_NETWORK)
    if name in PACKAGE_MANAGERS:
        if fetches and GLOBAL_FLAGS & set(rest):
            return (Access.OUTSIDE, NEEDS_SYSTEM)
        if fetches:
            return (Access.NETWORK, NEEDS_NETWORK)
        script = words[1] if len(words) > 1 and words[0] in {"run", "run-script"} else (words[0] if words else "")
        return (Access.NETWORK, NEEDS_PORT) if script.partition(":")[0] in SERVER_SCRIPTS else CONFINED
    return (Access.NETWORK, NEEDS_NETWORK) if fetches else CONFINED


def _python(program: str, rest: Sequence[str], in_environment: bool) -> Need:
    if len(rest) > 1 and rest[0] == "-m":
        if PIP.fullmatch(rest[1]):
            return _pip(program, rest[2:], in_environment)
        if rest[1] in SERVER_MODULES:
            return (Access.NETWORK, NEEDS_PORT)
        return _need(rest[1:], in_environment) if not PYTHON.fullmatch(rest[1]) else CONFINED
    return _by_subcommand(PurePosixPath(rest[0]).name, rest[1:]) if rest else CONFINED


def _pip(program: str, rest: Sequence[str], in_environment: bool) -> Need:
    """Need of pip: installing runs confined when the program itself is in an environment of the working directory."""
    first = next((word for word in rest if not word.startswith("-")), "")
    if first in {"download", "index", "search", "wheel"}:
        return (Access.NETWORK, NEEDS_NETWORK)
    if first not in {"install", "uninstall"}:
        return CONFINED
    inside = in_environment or ("/" in program and not program.startswith(("/", "~")))
    if inside and not GLOBAL_FLAGS & set(rest):
        return (Access.NETWORK, NEEDS_NETWORK) if first == "install" else CONFINED
    return (Access.OUTSIDE, NEEDS_SYSTEM)


def _uv(rest: Sequence[str]) -> Need:
    if rest[:1] == ["pip"]:
        system = "--system" in rest
        needed = rest[1:2] in (["install"], ["sync"], ["compile"])
        network: Need = (Access.NETWORK, NEEDS_NETWORK)
        return (Access.OUTSIDE, NEEDS_SYSTEM) if system else (network if needed else CONFINED)
    return _by_subcommand("uv", rest)


def _git(rest: Sequence[str]) -> Need:
    words = list(rest)
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in {"-C", "-c"} else words[1:]
    first, behind = (words[0], words[1:]) if words else ("", [])
    if first in GIT_NETWORK:
        return (Access.OUTSIDE, NEEDS_CREDENTIALS)
    if first == "clone":
        remote = any(REMOTE_URL.match(word) for word in behind)
        return (Access.OUTSIDE, NEEDS_SSH) if remote else (Access.NETWORK, NEEDS_NETWORK)
    if first == "branch" and {"-u", "--set-upstream-to", "--unset-upstream", "--edit-description"} & set(behind):
        return (Access.OUTSIDE, NEEDS_GIT_CONTROL)
    if first not in GIT_CONTROL_READERS:
        return CONFINED
    if first == "config" and len(behind) == 1:
        return CONFINED  # a key alone is read
    reads = behind[0] in GIT_CONTROL_READERS[first] if behind else first in GIT_BARE_READERS
    return CONFINED if reads else (Access.OUTSIDE, NEEDS_GIT_CONTROL)


def _go(rest: Sequence[str]) -> Need:
    if rest[:2] in (["mod", "download"], ["mod", "tidy"], ["mod", "vendor"]):
        return (Access.NETWORK, NEEDS_NETWORK)
    return _by_subcommand("go", rest)


def _php(rest: Sequence[str]) -> Need:
    return (Access.NETWORK, NEEDS_PORT) if "-S" in rest else CONFINED


def _rsync(rest: Sequence[str]) -> Need:
    remote = any(":" in word.partition("/")[0] for word in rest if not word.startswith("-"))
    return (Access.OUTSIDE, NEEDS_SSH) if remote else CONFINED


def _kill(rest: Sequence[str]) -> Need:
    """A pid in digits was read somewhere else; `$!`, `%1` and `$(cat pid)` are the command's own children."""
    return (Access.OUTSIDE, NEEDS_PROCESSES) if any(word.isdigit() for word in rest) else CONFINED


OWN_RULES: Final[dict[str, Callable[[Sequence[str]], Need]]] = {
    "git": _git,
    "uv": _uv,
    "go": _go,
    "kill": _kill,
    "php": _php,
    "rsync": _rsync,
}


MOST_HOSTS: Final = 20
MOST_OF_FILE: Final = 64 * 1024
ANY: Final = "*"
URL: Final = re.compile(r"\bhttps?://(?:[^\s/@'\"`<>|;&()\\]*@)?([^\s/'\"`<>|;&()\\?#]+)", re.IGNORECASE)
BARE: Final = re.compile(r"(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?=/|$)", re.IGNORECASE)
"""A host without a scheme, as `curl example.com/x` has it."""
FETCHERS: Final = frozenset({"curl", "wget", "http", "https", "xh"})
SCHEMES: Final = {"http": 80, "https": 443}
LOCAL: Final = (".local", ".localhost", ".internal", ".home.arpa")
_PYPI: Final = ("pypi.org", "files.pythonhosted.org")
_NPM: Final = ("registry.npmjs.org",)
_MAVEN: Final = ("repo.maven.apache.org",)
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("pip", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch"), _PYPI),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "bun", "bunx"), _NPM),
    "yarn": ("registry.yarnpkg.com", *_NPM),
    "cargo": ("index.crates.io", "static.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "gem": ("rubygems.org", "index.rubygems.org"),
    "bundle": ("rubygems.org", "index.rubygems.org"),
    "composer": ("repo.packagist.org", "api.github.com", "codeload.github.com"),
    "dotnet": ("api.nuget.org",),
    "deno": ("jsr.io", "deno.land", *_NPM),
    "mix": ("hex.pm", "repo.hex.pm"),
    "conda": ("conda.anaconda.org", "repo.anaconda.com"),
    "mvn": _MAVEN,
    "gradle": (*_MAVEN, "plugins.gradle.org", "services.gradle.org"),
}
"""Registries of package managers, as they come."""
PYTHON_INSTALLERS: Final = frozenset({"pip", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch"})
NODE: Final = frozenset({"npm", "npx", "pnpm", "pnpx", "bun", "bunx", "yarn"})
PIP_FILES: Final = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
PIP_INDEX: Final = re.compile(r"^\s*(?:extra-)?index-url\s*=\s*(.+)$", re.MULTILINE)
NPM_REGISTRY: Final = re.compile(r"^\s*(?:@[\w.-]+:)?registry\s*=\s*(\S+)", re.MULTILINE)
VERSIONED: Final = re.compile(r"(pip|python|pypy)[\d.]*")


class NeededHosts(Struct, frozen=True):
    """Hosts of a command, as `host` or `host:port`; `any_host` where the network by host is not enough."""

    hosts: tuple[str, ...] = ()
    any_host: bool = False


NO_HOSTS: Final = NeededHosts()


def find_needed_hosts(command: str, declared: Sequence[str], folder: Path) -> NeededHosts:
    """The hosts that the command names, those that the model `declared`, and the registries of its package managers.

    Reads settings of package managers in `folder` and in the home folder; starts nothing.
    """
    if ANY in declared:
        return NeededHosts(any_host=True)
    found = [*valid_hosts(declared), *_read_hosts(command)]
    for words in programs_in(command):
        name = _name(words)
        if name in PRESETS and command_access(shlex.join(words))[0] is not Access.CONFINED:
            found += _registries(name, folder, command)
    hosts = tuple(dict.fromkeys(found))
    direct = needs_any_host(command) or any(_is_local(host) for host in hosts)
    return NeededHosts(() if direct else hosts[:MOST_HOSTS], direct)


def needs_any_host(command: str) -> bool:
    """True where the words of a command show that it cannot use a proxy: by its program, or a host of this machine."""
    direct = (
        _name(words) in DIRECT_PROGRAMS or command_access(shlex.join(words))[1].endswith(NEEDS_PORT)
        for words in programs_in(command)
    )
    return any(direct) or any(_is_local(host) for host in _read_hosts(command))


def _read_hosts(command: str) -> list[str]:
    """Hosts in the words of a command."""
    found = _addresses(command)
    for words in programs_in(command):
        if _name(words) in FETCHERS:
            found += valid_hosts(word.partition("/")[0] for word in words[1:] if BARE.match(word) and "://" not in word)
    return found


def _addresses(text: str) -> list[str]:
    """Hosts of the addresses in a text; one that a variable is part of is not known."""
    found: list[str] = []
    for match in URL.finditer(text):
        scheme = match[0].partition(":")[0].lower()
        found += valid_hosts([match[1]], SCHEMES[scheme])
    return found


def valid_hosts(texts: Iterable[str], usual: int = 443) -> list[str]:
    """Hosts among the texts, each in one spelling; `usual` is the port that none of them names."""
    found: list[str] = []
    for text in texts:
        below = text.startswith("*.")
        try:
            host, port = host_and_port(text.removeprefix("*.").rstrip(".,"), usual)
        except ValueError:
            continue
        named = f"[{host}]" if ":" in host else host
        host = named if port in SCHEMES.values() else f"{named}:{port}"
        found.append(f"*.{host}" if below else host)
    return found


def _is_local(host: str) -> bool:
    """True for a host of this machine or its network, which the proxy never reaches."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    if "." not in name and ":" not in name:
        return True
    return name.endswith(LOCAL) or name.startswith(("127.", "10.", "192.168.", "[::1]", "[fe80", "[fc", "[fd"))


def _name(words: Sequence[str]) -> str:
    """The program, by the name under which it is known here."""
    name = PurePosixPath(words[0]).name
    match = VERSIONED.fullmatch(name)
    if match is None:
        return name
    if match[1] == "pip":
        return "pip"
    return _name(words[2:]) if len(words) > 2 and words[1] == "-m" else name


def _registries(name: str, folder: Path, command: str) -> list[str]:
    """Registries of a package manager: those that its settings name, else the usual ones."""
    named: list[str] = []
    if name in PYTHON_INSTALLERS:
        if re.search(r"(?:--index-url|--default-index|\s-i)\b", command):
            return []  # the address itself is in the command
        named = [url for path in PIP_FILES for url in _settings(Path(path).expanduser(), PIP_INDEX)]
        replaced = any("extra" not in line for line in _lines(PIP_FILES, PIP_INDEX))
        return [*([] if replaced else _PYPI), *named]
    if name in NODE:
        if "--registry" in command:
            return []
        named = [*_settings(folder / ".npmrc", NPM_REGISTRY), *_settings(Path("~/.npmrc").expanduser(), NPM_REGISTRY)]
    if name == "go":
        named = _addresses(os.environ.get("GOPROXY", ""))
    return named or list(PRESETS[name])


def _settings(path: Path, pattern: re.Pattern[str]) -> list[str]:
    return [host for match in pattern.finditer(_text(path)) for host in _addresses(match[1])]


def _lines(paths: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for path in paths:
        for match in pattern.finditer(_text(Path(path).expanduser())):
            yield match[0]


def _text(path: Path) -> str:
    """The beginning of a settings file; empty for one that is none, such as a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(MOST_OF_FILE).decode("utf-8", "replace")
