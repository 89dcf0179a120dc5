"""Output of a command as text for a model and a person, and the refusals of a sandbox read from it."""

from __future__ import annotations

import errno
import gettext
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tools.clean import clean, clean_line, reveal_name
from tools.contract import UNCONFINED, Captured, Finished, HostUse, Sandbox, SandboxMode
from tools.files.links import real_path
from tools.process.zygote import mount_places
from tools.process.zygote.mount_places import MountPlace
from tools.terminal.values import TextRun
from tools.wording import byte_size, pluralize

MOST_BYTES = 128 * 1024
"""Largest output that is returned whole (SPEC REQ-BASH)."""
KEPT_BYTES = 4 * 1024
"""Bytes kept at either end of a longer output."""
LONGEST_NAME = 80
ASK_HOSTS = "the agent can ask for hosts with access network and hosts"


def readable(captured: Captured) -> str:
    """The output without escape sequences: whole, or both ends with a line about the missing part."""
    notes = "".join(f"[sandbox: {note}]\n" for note in captured.notes)
    if network := network_line(captured.hosts):
        notes += f"[network: {network}]\n"
    if notes:
        text = readable(replace(captured, notes=(), hosts=()))
        return f"{text.rstrip()}\n{notes}" if text.strip() else notes
    if is_whole(captured):
        return _text(captured.head + captured.tail)
    total = len(captured.head) + captured.dropped + len(captured.tail)
    head, tail = captured.head[:KEPT_BYTES], (captured.head + captured.tail)[-KEPT_BYTES:]
    where = f"; the output is kept in {captured.spill}" if captured.spill else ""
    return f"{_text(head)}\n[… {total - len(head) - len(tail):,} of {total:,} bytes left out{where}]\n{_text(tail)}"


def network_line(hosts: Sequence[HostUse]) -> str:
    """Hosts that a command reached and was refused, in a few words; empty without any."""
    reached = [
        f"{clean_line(one.host)} ({pluralize(one.requests, 'request')}, {byte_size(one.received + one.sent)})"
        for one in hosts
        if one.requests
    ]
    refused = [f"{clean_line(one.host)} ({clean_line(one.why)})" for one in hosts if one.refused]
    parts = [f"reached {', '.join(reached)}"] if reached else []
    parts += [f"refused {', '.join(refused)}; {ASK_HOSTS}"] if refused else []
    return "; ".join(parts)


def is_whole(captured: Captured) -> bool:
    """True where `readable` leaves nothing out."""
    return not captured.dropped and len(captured.head) + len(captured.tail) <= MOST_BYTES


def all_lines(captured: Captured) -> int:
    """Lines of an output of which `readable` leaves out the middle; 0 where it leaves out nothing."""
    return 0 if is_whole(captured) else captured.lines


def show_runs(captured: Captured, output: str) -> tuple[TextRun, ...]:
    """Coloured pieces of `output`, which `readable` made; where it leaves out the middle their lines are counted from
    the end.
    """
    runs = captured.terminal.runs if captured.terminal is not None else ()
    if is_whole(captured):
        return runs
    before, found, behind = output.partition("\n[… ")
    head, tail = before.count("\n"), behind.count("\n") - 1
    moved = head + 2 + tail - captured.lines + 1 if found else 0
    kept = [run for run in runs if run.row < head]
    kept += [replace(run, row=run.row + moved) for run in runs if found and run.row >= captured.lines - tail]
    return tuple(kept)


def leftover_names(finished: Finished) -> tuple[str, ...]:
    """The processes a command left behind; programs choose their own names, so they are cleaned and cut."""
    return tuple(clean_line(name)[:LONGEST_NAME] for name in finished.leftovers)


def outcome_lines(finished: Finished, timeout: float | None) -> list[str]:
    """Describe the end of a command, one bracketed line each."""
    lines: list[str] = []
    if finished.timed_out:
        lines.append(f"[timed out after {timeout:g} s]")
    elif finished.exit_code is not None:
        lines.append(f"[exit code {finished.exit_code}]")
    else:
        lines.append(f"[ended by {_signal_name(finished.signal)}]")
    if finished.leftovers:
        count = len(finished.leftovers)
        names = ", ".join(dict.fromkeys(leftover_names(finished)))
        lines.append(f"[{pluralize(count, 'background process', 'background processes')} ended: {names}]")
    if finished.survivors:
        lines.append(f"[still alive, cannot be ended: pid {', '.join(map(str, finished.survivors))}]")
    return lines


def _text(raw: bytes) -> str:
    return clean(raw.decode("utf-8", "backslashreplace"))


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


ASK_MORE: Final = "the agent can ask for more with access and why, and /sandbox changes the sandbox"
NO_NETWORK: Final = "there is no network"
BY_PROXY: Final = "hosts are reached through the proxy that HTTP_PROXY names alone, and no name is looked up here"
NO_NAMESPACES: Final = "programs cannot make namespaces or mounts"
MOST_TEXT: Final = 64 * 1024
"""Characters at the end of an output that are read."""
MOST_LINES: Final = 400
MOST_PATHS: Final = 300
"""Paths that are looked at; each costs a few calls of the system."""
LONGEST_PATH: Final = 4_096
AROUND: Final = 4
"""Lines before and after an error in which its path may stand: npm, uv and cargo name it on another line."""
MOST_NAMED: Final = 2
"""Refusals that are named."""
NETWORK_SIGNS: Final = re.compile(
    r"network is unreachable|ENETUNREACH|name resolution|could not resolve|resolve host|name or service not known"
    r"|nodename nor servname|getaddrinfo|EAI_AGAIN|no address associated|failed to lookup address|dns error"
    r"|UnknownHostException|no such host|network request failed|\b(?:Errno|os error) (?:101|-2|-3)\b",
    re.IGNORECASE,
)
REFUSED: Final = re.compile(r"connection refused|ECONNREFUSED|connect\w*Exception", re.IGNORECASE)
PORT: Final = re.compile(r"(?:localhost|127\.0\.0\.1|::1\]?)\S{0,3}?[:, ]\s*(?:port )?(\d{1,5})|port (\d{1,5})")
_MISSING: Final = (errno.ENOENT, errno.ENOTDIR)
_DENIED: Final = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EBUSY, errno.EXDEV)
_MORE_MISSING: Final = r"FileNotFound|NoSuchFile|cannot find|can't find|cannot stat|can't open|not found|nonexistent"
_MORE_DENIED: Final = (
    r"AccessDenied|access is denied|PermissionError|not writable|read-only file ?system"
    r"|unsupported file type|can only add regular files"  # git about what covers a file
)
_NAMESPACES: Final = re.compile(r"\b(unshare|namespaces?|mount|clone|setns|pivot_root)\b", re.IGNORECASE)
_QUOTED: Final = re.compile(r"['\"`‘“«]([^'\"`’”»]{1,4096})['\"`’”»]")
_SEGMENTS: Final = re.compile(r":\s|,\s|\s\(|\t|\)")
_EDGES: Final = "'\"`‘’“”«»()[]{}<>,;:="


class SandboxView(Struct, frozen=True):
    """Sandbox of one program, with the facts that explain its refusals."""

    folder: Path
    """Working directory."""
    sandbox: Sandbox = UNCONFINED
    places: tuple[MountPlace, ...] = ()
    """Outermost places first."""
    secret: tuple[Path, ...] = ()
    """Places of keys."""


class _Signs(Struct, frozen=True):
    missing: re.Pattern[str]
    denied: re.Pattern[str]
    read_only: re.Pattern[str]


def refusals(text: str, view: SandboxView) -> str:
    """Clauses on what the sandbox refused to a program that failed with these words, joined by "and"; empty where
    nothing points to the sandbox. Looks at the disk: belongs in a thread.
    """
    if view.sandbox.mode is SandboxMode.OFF:
        return ""
    lines = text[-MOST_TEXT:].splitlines()[-MOST_LINES:]
    found = list(dict.fromkeys(_explain_refusals(lines, view)))[:MOST_NAMED]
    if not view.sandbox.network and _lacks_network(lines):
        found.append(NO_NETWORK if view.sandbox.hosts is None else BY_PROXY)
    denied = signs_of(os.environ).denied
    if not found and any(_NAMESPACES.search(line) and denied.search(line) for line in lines):
        found.append(NO_NAMESPACES)
    return " and ".join(found)


def refusal_note(clauses: str) -> str:
    """The line below the output of a command; empty without a refusal."""
    return f"[sandbox: {clauses}; {ASK_MORE}]" if clauses else ""


def reason_words(clauses: str, way_out: str) -> str:
    """Words behind the failure of a program that its sandbox explains; empty without a refusal."""
    return f"; the sandbox was the reason: {clauses}; {way_out}" if clauses else ""


def signs_of(environment: Mapping[str, str]) -> _Signs:
    """Words of the errors, in English and in the language of this system."""
    names = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    return _signs(next((environment[name] for name in names if environment.get(name)), ""))


@lru_cache(maxsize=4)
def _signs(language: str) -> _Signs:
    missing = _pattern(_MISSING, language, _MORE_MISSING)
    return _Signs(missing, _pattern(_DENIED, language, _MORE_DENIED), _pattern((errno.EROFS,), language, _MORE_DENIED))


def _pattern(numbers: Sequence[int], language: str, more: str) -> re.Pattern[str]:
    """One pattern for errors of the system: the name that C, Node and Go use, the sentence that the C library and Java
    print, in English and translated, and the number that Python and Rust print.
    """
    names = [errno.errorcode[number] for number in numbers]
    sentences = [os.strerror(number) for number in numbers]
    if language:
        catalogue = gettext.translation("libc", languages=language.split(":"), fallback=True)
        sentences += [catalogue.gettext(sentence) for sentence in sentences]
    words = "|".join(re.escape(sentence) for sentence in dict.fromkeys(sentences) if sentence)
    digits = "|".join(map(str, numbers))
    text = rf"\b(?:{'|'.join(names)})\b|{words}|\b(?:Errno|os error) (?:{digits})\b|{more}"
    return re.compile(text, re.IGNORECASE)


def _explain_refusals(lines: Sequence[str], view: SandboxView) -> Iterator[str]:
    """A clause for each error whose path is explained by its place, else one for a read-only error without a path."""
    signs = signs_of(os.environ)
    judged: dict[tuple[str, bool, bool], str] = {}
    read_only = named = False
    for at, line in enumerate(lines):
        found = signs.denied.search(line)
        denied, match = found is not None, found or signs.missing.search(line)
        if match is None:
            continue
        frozen = signs.read_only.search(line) is not None
        read_only = read_only or frozen
        around = set(range(max(at - AROUND, 0), min(at + AROUND + 1, len(lines)))) - {at}
        beside = [name for other in sorted(around, key=lambda one: abs(one - at)) for name in _names(lines[other])]
        for name in (*_nearest(line, match), *(name for name in beside if name.startswith(("/", "~/")))):
            key = (name, denied, frozen)
            if key not in judged:
                if len(judged) == MOST_PATHS:
                    return
                judged[key] = _judge(_path(name, view.folder), view, denied=denied, frozen=frozen)
            if judged[key]:
                named = True
                yield judged[key]
                break
    if read_only and not named:
        writes = view.sandbox.mode is SandboxMode.WORKSPACE
        yield f"everything but {reveal_name(view.folder)} is read-only" if writes else "everything is read-only"


def _nearest(line: str, error: re.Match[str]) -> Sequence[str]:
    """Names in the line of an error, the nearest to its words first; a program's own name in front is none."""
    middle = (error.start() + error.end()) / 2
    names = [name for name in _names(line) if name not in error[0] and error[0] not in name]
    others = [name for name in names if not line.startswith(f"{name}:")]
    return sorted(others or names, key=lambda name: abs(line.find(name) + len(name) / 2 - middle))


def _names(line: str) -> Iterator[str]:
    """Words of a line that may name a path."""
    words = [*_QUOTED.findall(line), *_SEGMENTS.split(line), *line.split()]
    words += [word.partition("=")[2] for word in words if "=" in word]
    for word in dict.fromkeys(one.strip(_EDGES).rstrip(".").removeprefix("file://") for one in words):
        if word and len(word) <= LONGEST_PATH and "\0" not in word:
            yield word


def _path(name: str, folder: Path) -> Path:
    """The path that a word names, without links above its last part."""
    named = f"{Path.home()}{name[1:]}" if name.startswith("~/") else os.path.join(folder, name)  # noqa: PTH118 - quick
    above, last = os.path.split(os.path.normpath(named))
    return Path(real_path(above)) / last


def _judge(path: Path, view: SandboxView, *, denied: bool, frozen: bool) -> str:
    """A clause where the sandbox explains the error at `path`; empty where it would be one without a sandbox too."""
    # The innermost place around `path`; None where there is none, as all that is no place is read-only.
    around = [place for place in view.places if path.is_relative_to(place.path)]
    place = around[-1] if around else None
    kind = place.kind if place is not None else mount_places.READ_ONLY
    if any(path.is_relative_to(secret) for secret in view.secret):
        kind = mount_places.EMPTY
    if not denied:
        hides = kind in {mount_places.EMPTY, mount_places.INSTEAD_READ_ONLY, mount_places.INSTEAD}
        return _describe_hidden(path, place) if hides or path.is_relative_to("/dev") else ""
    if kind in {mount_places.WRITABLE, mount_places.INSTEAD} or (kind == mount_places.COPY and not frozen):
        return ""
    if (
        not os.access(path if os.path.lexists(path) else path.parent, os.W_OK)
        or path.is_relative_to("/proc")
        or path.is_relative_to("/sys")
    ):
        return ""
    hides = kind in {mount_places.EMPTY, mount_places.INSTEAD_READ_ONLY}
    return f"{reveal_name(path)} is {'hidden' if hides else 'read-only'}"


def _describe_hidden(path: Path, place: MountPlace | None) -> str:
    """A clause where a path that is missing inside stands outside, or the folder does that it would be made in."""
    if os.path.lexists(path):
        return f"{reveal_name(path)} is hidden"
    above = path.parent
    is_below = place is not None and above.is_relative_to(place.path) and str(above) != place.path
    return f"{reveal_name(above)} is hidden" if is_below and above.is_dir() else ""


def _lacks_network(lines: Sequence[str]) -> bool:
    """True where a line names a failure that comes of no network; a refused connection only where a program outside
    listens on that port.
    """
    for line in lines:
        if NETWORK_SIGNS.search(line):
            return True
        if REFUSED.search(line):
            ports = {int(one or two) for one, two in PORT.findall(line)}
            if ports & _listening_ports():
                return True
    return False


def _listening_ports() -> frozenset[int]:
    """TCP ports on which a program of this machine listens; empty where the system does not say."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            rows = Path(f"/proc/net/{name}").read_text("ascii").splitlines()[1:]
        except (OSError, ValueError):
            continue
        cells = (row.split() for row in rows)
        found |= {int(cell[1].rpartition(":")[2], 16) for cell in cells if len(cell) > 3 and cell[3] == "0A"}
    return frozenset(found)
