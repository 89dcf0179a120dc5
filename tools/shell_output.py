"""Output of a command as text for a model and a person."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from msgspec.structs import replace

from tools.clean import clean, clean_line
from tools.contract import Captured, Finished, HostUse
from tools.terminal.values import TextRun
from tools.wording import byte_size, counted

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
        f"{clean_line(one.host)} ({counted(one.requests, 'request')}, {byte_size(one.received + one.sent)})"
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


def shown_runs(captured: Captured, output: str) -> tuple[TextRun, ...]:
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
        lines.append(f"[{counted(count, 'background process', 'background processes')} ended: {names}]")
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
