"""Paths that are asked about or closed: keys, settings, self-starting files, links of the home folder."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.links import real_path, walk_links
from tools.files.self_starting import INSTALLED, VERSION_CONTROL, is_self_starting

MOST_ENTRIES: Final = 40_000
"""Entries of the home folder and of its hidden folders that are looked at, the upper ones first."""
MOST_IN_ONE: Final = 4_000
"""Entries of one hidden folder, or of one in `.config` or `.local`: a larger one holds data, and delays no other."""
LONGEST_LOOK: Final = 1.0
"""Seconds after which the rest is left to a thread."""
DEEPEST: Final = 7
"""Folders on top of each other below the home folder."""
STALE: Final = 300.0
"""Seconds for which a look at all of a home folder holds: commands make no links there, and a person seldom does."""
JUST_NOW: Final = 100_000_000
"""Nanoseconds: a folder that changed so shortly before it was read may change again within one tick of its clock."""
_FIRST: Final = (".config", ".local", ".ssh", ".cargo", "bin")
"""Folders of settings and programs, looked at before the other ones of their level."""
_SHARED: Final = frozenset({".config", ".local"})
_PASSED: Final = frozenset({*INSTALLED, *VERSION_CONTROL, "trash"})


class _Folder(Struct, frozen=True):
    """Entries of a folder as of its change time."""

    changed: int
    folders: tuple[str, ...]
    links: tuple[str, ...]
    entries: int


_known: Final[dict[str, _Folder]] = {}
"""Folders by path, read again only where their change time has moved."""


def find_home_links(workspace: Path, home: Path, patience: float = 0.0) -> dict[Path, Path] | None:
    """The links of a home folder that lead into or through a resolved `workspace`, by their places there.

    Every link counts that begins with a dot at the home folder's top, or lies below a hidden folder or `bin`, whatever
    its name: what reads it is not known. A link to the workspace itself makes nothing in it start. None where the first
    look at a large home folder takes longer than `patience` seconds. Reads the disk, some milliseconds.
    """
    top, root = real_path(home), f"{workspace}/"
    links, is_whole = _upper_links(top, str(workspace))
    leading = [(link, _places_behind(link)) for link in links]
    if not is_whole:
        deeper = _whole_looks.setdefault(top, _WholeLook(top)).links(patience)
        if deeper is None:
            return None
        leading += (one for one in deeper if not one[0].startswith(root))
    found: dict[Path, Path] = {}
    for link, places in leading:
        for place in places:
            if place.startswith(root):
                found.setdefault(Path(place), Path(link))
    return found


def _places_behind(link: str) -> tuple[str, ...]:
    """The place that a link leads to, and the links between, each of which could lead it elsewhere."""
    target, links = walk_links(link)
    return target, *(one for one in links if one != link)


def _upper_links(home: str, workspace: str) -> tuple[list[str], bool]:
    """Links level by level within bounds, and whether these are all.

    With the home folder in the workspace the folders that are looked at first are all: every link leads into it.
    """
    end, left = time.monotonic() + LONGEST_LOOK, MOST_ENTRIES
    top = _read(home)
    links = [f"{home}/{name}" for name in top.links if name.startswith(".")]
    is_inside = f"{home}/".startswith(f"{workspace}/")
    waiting = deque(
        (f"{home}/{name}", 1, name) for name in _list_hidden(top.folders) if not is_inside or name in _FIRST
    )
    seen: dict[str, int] = {}
    is_whole, deepest = True, 3 if is_inside else DEEPEST
    while waiting and left > 0 and time.monotonic() < end:
        path, depth, part = waiting.popleft()
        if path == workspace:
            continue
        if seen.get(part, 0) > MOST_IN_ONE:
            is_whole = False
            continue
        folder = _read(path)
        seen[part] = seen.get(part, 0) + folder.entries
        left -= folder.entries + 1
        links += (f"{path}/{name}" for name in folder.links)
        inner = [name for name in folder.folders if not _is_passed(name)]
        if depth < deepest:
            splits = depth == 1 and part in _SHARED
            waiting += ((f"{path}/{name}", depth + 1, f"{part}/{name}" if splits else part) for name in inner)
        elif inner:
            is_whole = False
    return links, is_inside or (is_whole and not waiting)


def _list_hidden(folders: Sequence[str]) -> list[str]:
    """Folders of a home folder that hold settings and programs, the usual ones first."""
    others = (name for name in folders if name.startswith(".") and name not in _FIRST and not _is_passed(name))
    return [*_FIRST, *others]


class _WholeLook:
    """Looks in a thread at all hidden folders of a home folder, where the bounded look leaves some out."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._next = 0.0
        self._links: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def links(self, patience: float) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        """The links and their places as of the newest look; None while the first one takes more than `patience` s."""
        with self._lock:
            if time.monotonic() > self._next:
                self._next = math.inf
                threading.Thread(target=self._look, daemon=True).start()
        return self._links if self._ended.wait(patience) else None

    def _look(self) -> None:
        links, waiting = list[str](), [f"{self._home}/{name}" for name in _list_hidden(_read(self._home).folders)]
        while waiting:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        links.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False) and not _is_passed(entry.name):
                        waiting.append(entry.path)
        self._links = tuple((link, _places_behind(link)) for link in links)
        self._next = time.monotonic() + STALE
        self._ended.set()


_whole_looks: Final[dict[str, _WholeLook]] = {}
"""One for each home folder, by its path."""


def _is_passed(name: str) -> bool:
    """True for folders of version control, of packages of others and of copies, which hold no settings."""
    folded = name.casefold()
    return folded in _PASSED or "cache" in folded


def _read(path: str) -> _Folder:
    """The entries of a folder; none where it cannot be read."""
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - one call for each of many folders
        known = _known.get(path)
        if known is not None and known.changed == changed:
            return known
        with os.scandir(path) as entries:
            found = list(islice(entries, MOST_ENTRIES))
    except OSError:
        return _Folder(0, (), (), 0)
    links = tuple(one.name for one in found if one.is_symlink())
    folders = tuple(one.name for one in found if one.is_dir(follow_symlinks=False))
    folder = _Folder(changed, folders, links, len(found))
    if time.time_ns() - changed > JUST_NOW and len(_known) < MOST_ENTRIES:
        _known[path] = folder
    return folder


SHELL_FILES: Final = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".inputrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".gvimrc",
    ".emacs",
    ".screenrc",
    "bin",
    "go/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    ".local/lib",
    ".local/share/applications",
    ".config/fish",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/nvim",
    ".config/tmux",
    ".local/bin",
    ".vim",
    ".emacs.d",
    ".ssh",
    ".gnupg",
)
"""Files below the home folder that a shell, a login or an editor runs at its next start."""
PHOENIX_FOLDERS: Final = (".config/phoenix", ".local/share/phoenix", ".local/state/phoenix")
"""Default places of Phoenix's settings and records; each may be missing."""
SECRET_PLACES: Final = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/sops",
    ".docker",
    ".kube",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/doctl",
    ".config/stripe",
    ".config/ngrok",
    ".config/configstore",
    ".config/Bitwarden",
    ".config/1Password",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".cache/huggingface/token",
    ".huggingface/token",
    ".oci",
    ".s3cfg",
    ".boto",
    ".fly",
    ".subversion/auth",
    ".Xauthority",
    ".ICEauthority",
    ".thunderbird",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/evolution",
    ".local/share/evolution",
    ".config/Slack",
    ".config/discord",
    ".config/Signal",
    ".config/Element",
    ".local/share/TelegramDesktop",
    ".purple",
    ".mbsyncrc",
    ".msmtprc",
    ".var/app",
    ".local/share/Trash",
    ".local/share/kwalletd",
    ".local/share/keepassxc",
    ".config/keepassxc",
    ".config/mozilla",
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    ".cache/BraveSoftware",
    ".cache/microsoft-edge",
    ".cache/thunderbird",
    ".cache/huggingface/stored_tokens",
    ".config/hcloud",
    ".config/heroku",
    ".config/netlify",
    ".config/flyctl",
    ".config/.wrangler",
    ".config/railway",
    ".config/supabase",
    ".config/argocd",
    ".config/wandb",
    ".config/pypoetry/auth.toml",
    ".config/pip/pip.conf",
    ".config/composer/auth.json",
    ".config/nuget",
    ".config/anthropic",
    ".config/openai",
    ".config/io.datasette.llm",
    ".config/goose",
    ".config/aichat",
    ".config/remmina",
    ".config/filezilla",
    ".config/Code/User/globalStorage",
    ".config/Cursor/User/globalStorage",
    ".local/share/com.vercel.cli",
    ".local/share/pypoetry/auth.toml",
    ".vercel",
    ".netlify",
    ".railway",
    ".supabase",
    ".wrangler",
    ".cloudflared",
    ".argocd",
    ".databrickscfg",
    ".snowflake",
    ".snowsql",
    ".dbt/profiles.yml",
    ".kaggle",
    ".modal.toml",
    ".pulumi/credentials.json",
    ".ngrok2",
    ".terraformrc",
    ".composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".bundle/config",
    ".yarnrc.yml",
    ".condarc",
    ".pip/pip.conf",
    ".curlrc",
    ".wgetrc",
    ".claude.json",
    ".anthropic",
    ".qwen/oauth_creds.json",
    ".config/opencode",
    ".vnc",
    ".putty",
    ".lesshst",
    ".viminfo",
    ".ipython/profile_default/history.sqlite",
    ".jupyter",
    ".local/share/jupyter/runtime",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".irb_history",
    ".local/share/fish/fish_history",
)
"""Places below the home folder with keys, tokens, cookies and histories of input."""


def secret_paths(home: Path) -> tuple[Path, ...]:
    """Paths below `home` that hold keys, whether or not they exist; behind a link where it leads, too."""
    return tuple(dict.fromkeys((*(home / name for name in SECRET_PLACES), *map(Path, _behind_links(home)))))


def is_secret(path: Path, home: Path) -> bool:
    """True for a resolved `path` that is, or lies in, a place of keys."""
    return _is_secret(path, home, _behind_links(home))


def has_secrets(folder: Path, home: Path) -> bool:
    """True for a resolved `folder` that is, lies in or holds a place of keys."""
    behind = _behind_links(home)
    above, top = f"{str(folder).rstrip('/')}/", str(home).rstrip("/")
    if any(f"{place}/".startswith(above) for place in (*(f"{top}/{name}" for name in SECRET_PLACES), *behind)):
        return True
    return _is_secret(folder, home, behind)


def _is_secret(path: Path, home: Path, behind: Sequence[str]) -> bool:
    if _first_place(path, home, _SECRET_NAMES):
        return True
    text = f"{path}/"
    return any(text.startswith(f"{place.rstrip('/')}/") for place in behind)


def _behind_links(home: Path) -> list[str]:
    """Targets of `SECRET_PLACES`; each folder of the paths is resolved once, since every call needs this."""
    known = {"": real_path(home)}
    return [_leads_to(name, known) for name in SECRET_PLACES]


def _leads_to(name: str, known: dict[str, str]) -> str:
    """The real path of a name below the first of `known`, which keeps it."""
    if name not in known:
        above, _, last = name.rpartition("/")
        path = f"{_leads_to(above, known).rstrip('/')}/{last}"
        known[name] = real_path(path) if os.path.islink(path) else path  # noqa: PTH114 - 80 of them a call
    return known[name]


def protection(path: Path, home: Path) -> str:
    """The part of a resolved `path` that makes it protected against changes, empty where nothing does."""
    for part in path.parts:
        if part.casefold() in VERSION_CONTROL:
            return part
    if is_self_starting("/".join(part for part in path.parts if part != path.anchor)):
        return path.name
    return _home_place(path, home)


def describe_completed_repository(path: Path, working_dir: Path) -> str:
    """A clause about the folder that git takes for a repository once `path` exists; empty where none is (SECURITY S9).

    Git needs no `.git`: a HEAD beside objects and refs, or beside `commondir`, makes any folder one, with the settings
    and hooks beside them.
    """
    for folder in path.parents:
        if not folder.is_relative_to(working_dir):
            break
        first = path.relative_to(folder).parts[0]
        if first.casefold() not in _REPOSITORY:
            continue
        there = {name for name in ("HEAD", "commondir", "objects", "refs") if os.path.lexists(folder / name)} | {first}
        if "HEAD" in there and ("commondir" in there or {"objects", "refs"} <= there):
            return f"{first} in a folder that git takes for a repository"
    return ""


def _home_place(path: Path, home: Path) -> str:
    return _first_place(path, home, _HOME_NAMES)


def _first_place(path: Path, home: Path, names: frozenset[str]) -> str:
    """The one of `names` below `home` that `path` is or lies in, empty where none is."""
    if not path.is_relative_to(home):
        return ""
    return next((name for name in accumulate(path.relative_to(home).parts, "{}/{}".format) if name in names), "")


def describe_protection_within(path: Path, working_dir: Path, home: Path) -> str:
    """`protection` of a resolved `path`, by its part below the working directory where it lies inside.

    So a checkout below `~/.claude/worktrees` is not protected as a whole.
    """
    if not path.is_relative_to(working_dir):
        return protection(path, home)
    inside = protection(path.relative_to(working_dir), home) or _home_place(path, home)
    return inside or _find_link_around(path, working_dir, home) or describe_completed_repository(path, working_dir)


def _find_link_around(path: Path, working_dir: Path, home: Path) -> str:
    """The link of the home folder that leads to a path of the working directory, or around it; empty for none."""
    links = find_home_links(working_dir, home, LONGEST_LOOK)
    if links is None:
        return "what links of your home folder, which is still being looked at, may lead to"
    return next((str(links[one]) for one in (path, *path.parents) if one in links), "")


_SECRET_NAMES: Final = frozenset(SECRET_PLACES)
_HOME_NAMES: Final = frozenset((*SHELL_FILES, *SECRET_PLACES))
_REPOSITORY: Final = frozenset({
    "head",
    "objects",
    "refs",
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "packed-refs",
    "modules",
    "worktrees",
})
"""Entries of a git folder, in small letters, that make it one or that git obeys."""


_SECRET_FILES = re.compile(
    r"\.env|\.env[.-].*|.*\.env|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.(?:key|p12|pfx|kdbx|keystore|jks|ppk)"
    r"|credentials(?:\.(?:toml|json|ya?ml))?|secrets?\.(?:toml|json|ya?ml|env)|client_secret.*\.json",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r".*(?:example|sample|template|dist|schema).*", re.IGNORECASE)
_KEY_BEGINS = re.compile(rb"\s*(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File|AGE-SECRET-KEY)")


def looks_secret(path: str) -> bool:
    """True for a file whose name, or a folder above it, indicates keys, anywhere in the file system."""
    *folders, name = path.split("/")
    if any(folder in _SECRET_FOLDERS for folder in folders) or name in _SECRET_FOLDERS:
        return True
    return _SECRET_FILES.fullmatch(name) is not None and _EXAMPLE.fullmatch(name) is None


def begins_as_key(content: bytes) -> bool:
    """True for the first bytes of a private key."""
    return _KEY_BEGINS.match(content[:200]) is not None


_SECRET_FOLDERS = frozenset(place for place in SECRET_PLACES if "/" not in place)
