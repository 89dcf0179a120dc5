"""Parser from the person's text to a `Request`: regular expressions and a little tolerance, no model."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from tools.comparing import near_names


class Courtesy(StrEnum):
    """Small talk without tools."""

    HELLO = "hello"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    WHO = "who"
    HOW = "how"


class SmallTalk(Struct, frozen=True):
    """A greeting, thanks, or a question about the guide itself."""

    kind: Courtesy


class Help(Struct, frozen=True):
    """Question about the guide's abilities."""


class ListRequest(Struct, frozen=True):
    """Request to list the files here, in a folder, or matching a glob."""

    folder: str = ""
    glob: str = ""


class ReadFiles(Struct, frozen=True):
    """Show one or more files."""

    paths: tuple[str, ...]


class SearchRequest(Struct, frozen=True):
    """Find a text, in all files or in those that match `glob`."""

    text: str
    glob: str = ""


class RunCommand(Struct, frozen=True):
    """Request to run a shell command verbatim."""

    command: str


class RunTests(Struct, frozen=True):
    """Find out how this project is tested, and do it."""


class GitChanges(Struct, frozen=True):
    """Question about the changes since the last commit."""


class Replace(Struct, frozen=True):
    """Replace one text by another in a file."""

    path: str
    old: str
    new: str


class WriteRequest(Struct, frozen=True):
    """Write a whole file."""

    path: str
    content: str


class Describe(Struct, frozen=True):
    """Question about the project."""


class CountTo(Struct, frozen=True):
    """Count aloud from 1 to `limit`."""

    limit: int


class CountLines(Struct, frozen=True):
    """Question about the number of lines of a file."""

    path: str


class ThinkRequest(Struct, frozen=True):
    """Note a thought with the think tool."""

    topic: str


class Summarize(Struct, frozen=True):
    """Request to summarize this conversation."""


GuideRequest: TypeAlias = (
    SmallTalk
    | Help
    | ListRequest
    | ReadFiles
    | SearchRequest
    | RunCommand
    | RunTests
    | GitChanges
    | Replace
    | WriteRequest
    | Describe
    | CountTo
    | CountLines
    | ThinkRequest
    | Summarize
)


_QUOTES = re.compile(r"['\"`]{0,8}")
_WELL_KNOWN = frozenset({"readme", "makefile", "dockerfile", "license", "changelog", "contributing", "gemfile"})
_AFTERTHOUGHT = re.compile(
    r"(?:,? (?:and|then) (?:tell|explain|show|say|describe|summari[sz]e)\b.*| to me| for me| please| file)$",
    re.IGNORECASE | re.DOTALL,
)
_SEPARATOR = re.compile(r",\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_QUOTED_ITEM = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")


def unquote(text: str) -> str:
    """`text` without surrounding space and one layer of quotes."""
    stripped = text.strip()
    opening = _QUOTES.match(stripped)
    for size in range(len(opening[0]) if opening else 0, 0, -1):
        if len(stripped) >= 2 * size and stripped.endswith(stripped[:size]):
            return stripped[size:-size]
    return stripped


def read_file_name(text: str) -> str:
    """The name of a file without quotes, and without the `@` that attaches it to a message."""
    return unquote(text.strip().removeprefix("@"))


def is_path(text: str) -> bool:
    """True when this could name a file or a glob rather than be a phrase."""
    if not text or "\n" in text or "\0" in text:
        return False
    return bool(re.search(r"\.\w+$|[/\\*?~]|^\.", text)) or text.casefold() in _WELL_KNOWN


def split_paths(text: str) -> tuple[str, ...]:
    """The files that `a.py, "my notes.txt" and c/d` names; empty when a part looks like no file."""
    rest = _AFTERTHOUGHT.sub("", text.strip())
    quoted = tuple(found.group(1) or found.group(2) or found.group(3) for found in _QUOTED_ITEM.finditer(rest))
    if quoted and not _QUOTED_ITEM.sub("", rest).replace("and", "").strip(" ,@"):
        return quoted
    parts = tuple(read_file_name(part) for part in _SEPARATOR.split(rest) if part.strip())
    return parts if parts and all(is_path(part) for part in parts) else ()


LONGEST = 30_000
"""Characters of a message with its code block; more is a paste, not a request of these rules."""
LONGEST_SENTENCE = 2_000
"""Characters outside the code block; the rules backtrack, so their input is bounded."""
COUNT_LIMIT = 1_000
SAMENESS = 0.75
"""Least similarity of a mistyped verb; 0.75 takes "serach" and "lsit" and leaves "bead" alone."""

_POLITE = re.compile(
    r"^(?:(?:please|pls|plz|hey|hi|hello|ok(?:ay)?|now|then|so|and|phoenix|kindly|just|let'?s|"
    r"(?:can|could|would|will) (?:you|we)(?: mind)?|i(?:'d| would)? (?:want|need|like)(?: you)? to|"
    r"i(?:'d| would) like you to|help me(?: to)?|go ahead and|try to)\b[\s,:]*)+",
    re.IGNORECASE,
)
_POLITE_END = re.compile(r"(?:[\s,]+(?:please|pls|plz|for me|thanks|thank you|now))+[\s.!?]*$", re.IGNORECASE)
_FENCE = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[^`\n]*\n(.*?)(?:\n?\1|\Z)", re.DOTALL)
_MARKER = re.compile(r"^([A-Z]{3,}?)(?:s|'s| comments?| notes?| markers?)$")
"""`TODO comments` means the word TODO."""
_VERBS = frozenset({
    "list", "show", "read", "open", "cat", "view", "display", "search", "find", "grep", "look", "run", "execute",
    "write", "create", "make", "save", "edit", "replace", "change", "rename", "describe", "explain", "summarize",
    "count", "think", "help", "test",
})  # fmt: skip

Build: TypeAlias = "Callable[[re.Match[str], str], GuideRequest | None]"
RequestRule: TypeAlias = tuple[str, Build]


def understand(text: str) -> GuideRequest | None:
    """The request in `text`, or None when no rule fits."""
    if len(text) > LONGEST:
        return None
    fence = _FENCE.search(text)
    block = fence.group(2) if fence else ""
    sentence = text.replace(fence.group(0), " ") if fence else text
    if len(sentence) > LONGEST_SENTENCE:
        return None
    plain = sentence.strip()
    bare = _POLITE_END.sub("", _POLITE.sub("", plain, count=1)).strip()
    readings = [bare, plain]
    verb, space, rest = bare.partition(" ")
    if verb.casefold() not in _VERBS:
        close = near_names(verb.casefold(), sorted(_VERBS), 1, SAMENESS)
        readings += [f"{word}{space}{rest}" for word in close]
    for candidate in [reading for reading in readings if reading]:
        for pattern, build in _RULES:
            match = re.match(pattern, candidate, re.IGNORECASE | re.DOTALL)  # compiled with its first use
            request = build(match, block) if match else None
            if request is not None:
                return request
    return None


_SENTENCE_END = r"[\s.!?]*$"
_VERBATIM_END = r"\s*$"


def _rule(pattern: str, build: Build, end: str = _SENTENCE_END) -> RequestRule:
    """A rule that must fit from the first character to the last."""
    return f"(?:{pattern}){end}", build


def _courtesy(kind: Courtesy) -> Build:
    return lambda _match, _block: SmallTalk(kind)


def _always(request: GuideRequest) -> Build:
    return lambda _match, _block: request


def _read(match: re.Match[str], _block: str) -> GuideRequest | None:
    paths = split_paths(match["rest"])
    return ReadFiles(paths) if paths else None


def _list(match: re.Match[str], _block: str) -> GuideRequest | None:
    where = read_file_name(match["where"] or "")
    if re.search(r"[*?\[]", where):
        return ListRequest(glob=where)
    here = where.casefold().rstrip("/.") in {"", "here", "this", "this project", "project"}
    return ListRequest() if here else ListRequest(where)


def _find(match: re.Match[str], _block: str) -> GuideRequest | None:
    """`find app.py` wants the file, `find app` the word."""
    name = read_file_name(match["name"])
    return ListRequest(glob=name) if is_path(name) and not re.search(r"\s", name) else None


def _search(match: re.Match[str], _block: str) -> GuideRequest | None:
    text = _MARKER.sub(r"\1", unquote(match["text"]))
    glob = read_file_name(match["glob"] or "")
    everywhere = re.fullmatch(r"(?:(?:this|the|all|my|every)\b.*|here|files?)", glob, re.IGNORECASE)
    if everywhere or not glob:
        return SearchRequest(text) if text else None
    if not is_path(glob):
        return SearchRequest(unquote(f"{match['text']} in {match['glob']}"))
    return SearchRequest(text, glob)


def _run(match: re.Match[str], block: str) -> GuideRequest | None:
    command = block.strip() or unquote(match["command"] or "")
    return RunCommand(command) if command else None


def _replace(match: re.Match[str], _block: str) -> GuideRequest | None:
    old, new, path = unquote(match["old"]), unquote(match["new"]), read_file_name(match["path"])
    return Replace(path, old, new) if old and path else None


def _write(match: re.Match[str], block: str) -> GuideRequest | None:
    content = block + "\n" if block else unquote(match["content"] or "") + "\n"
    path = read_file_name(match["path"])
    return WriteRequest(path, content) if path and content.strip() else None


def _write_into(match: re.Match[str], block: str) -> GuideRequest | None:
    path = read_file_name(match["path"])
    content = block or unquote(match["content"] or "")
    return WriteRequest(path, content + "\n") if is_path(path) and content.strip() else None


def _count_to(match: re.Match[str], _block: str) -> GuideRequest:
    return CountTo(min(int(match["limit"]), COUNT_LIMIT))


def _count_lines(match: re.Match[str], _block: str) -> GuideRequest | None:
    path = read_file_name(match["path"])
    return CountLines(path) if is_path(path) else None


def _think(match: re.Match[str], block: str) -> GuideRequest:
    return ThinkRequest(unquote(match["topic"] or "") or block.strip() or "what to do next")


_PROJECT = r"(?:this |the |my |our )?(?:project|repo(?:sitory)?|code ?base|folder|directory|code)"
_THE_FILE = r"(?:(?:the |this |that )?(?:contents? of )?(?:the )?files? )?"

_RULES: tuple[RequestRule, ...] = (
    _rule(
        r"(?:hi|hello|hey|hallo|good (?:morning|day|evening|afternoon)|greetings|yo)(?: there| phoenix| again)?",
        _courtesy(Courtesy.HELLO),
    ),
    _rule(
        r"(?:(?:many )?thanks?(?: you)?|thx|cheers|great|nice|perfect|well done)(?:[ ,].{0,40})?",
        _courtesy(Courtesy.THANKS),
    ),
    _rule(r"(?:bye|goodbye|see you|good night)(?: .{0,20})?", _courtesy(Courtesy.GOODBYE)),
    _rule(
        r"(?:who|what) (?:(?:are you|am i talking to|model (?:are you|is this))(?: .{0,30})?|is this)",
        _courtesy(Courtesy.WHO),
    ),
    _rule(r"how (?:are|is) (?:you|it going|things)(?: .{0,20})?", _courtesy(Courtesy.HOW)),
    _rule(
        r"(?:help|/help|\?|what can (?:you|i) (?:do|say|ask|type).{0,40}|commands?|how does this work)", _always(Help())
    ),
    _rule(r"count (?:up )?(?:from (?:1|one) )?to (?P<limit>\d{1,9})", _count_to),
    _rule(
        r"(?:count (?:the )?(?:number of )?lines (?:of|in) |how many lines (?:are in|does|has|in) |line count of )"
        r"(?P<path>.+?)(?: have)?",
        _count_lines,
    ),
    _rule(
        r"(?:run|execute|start|do)?\s*(?:all |the |my |our |its )*(?:unit )?(?:tests?|test suite|pytest suite)"
        r"(?: of this project| here)?",
        _always(RunTests()),
    ),
    _rule(
        r"(?:(?:what|which files)(?:'s| is| has| have)? (?:been )?(?:changed|different|modified|new)\b.{0,40}"
        r"|git changes"
        r"|(?:show |list )?(?:me )?(?:the |my |all )?(?:uncommitted |git |local )?(?:changes|diff)(?: in git)?"
        r"|(?:what is |what's |show )?(?:me )?(?:the )?git status.{0,12})",
        _always(GitChanges()),
    ),
    _rule(
        rf"(?:(?:describe|explain|summari[sz]e|introduce|analy[sz]e|look at|explore) (?:me )?{_PROJECT}"
        rf"|(?:what is|what's|what does|tell me about|give me an overview of|overview of) {_PROJECT}(?: do| about)?)",
        _always(Describe()),
    ),
    _rule(
        r"(?:summari[sz]e|sum up|recap)(?: (?:this|the|our))?(?: (?:conversation|chat|session|discussion))?"
        r"|what did (?:we|i) (?:do|say|talk about)(?: so far)?",
        _always(Summarize()),
    ),
    _rule(r"think(?: (?:hard|about|through|of))*(?: (?P<topic>.+?))?", _think),
    _rule(
        r"(?:edit|replace|change|rename|substitute|swap)\s+(?P<old>'.*?'|\".*?\"|`.*?`|.+?)\s+(?:with|by|to|into|for)\s+"
        r"(?P<new>'.*?'|\".*?\"|`.*?`|.*?)\s+(?:in|inside|within|of)\s+" + _THE_FILE + r"(?P<path>.+?)",
        _replace,
    ),
    _rule(
        r"(?:in|inside)\s+" + _THE_FILE + r"(?P<path>.+?),?\s+(?:replace|change|rename)\s+"
        r"(?P<old>'.*?'|\".*?\"|`.*?`|.+?)\s+(?:with|by|to|into)\s+(?P<new>'.*?'|\".*?\"|`.*?`|.*?)",
        _replace,
        _VERBATIM_END,
    ),
    _rule(
        r"(?:write|create|make|save|add)\s+(?:a |an |the |new )*" + _THE_FILE + r"(?:called |named )?"
        r"(?P<path>'.*?'|\".*?\"|`.*?`|.+?)[,:]?\s+(?:with|containing|that says|saying)(?: the)?"
        r"(?: (?:content|contents|text|word|line|words|lines))?:?\s*(?P<content>.*?)",
        _write,
        _VERBATIM_END,
    ),
    _rule(r"(?:write|save|put)\s+(?P<content>.*?)\s*(?:in|into|to)\s+" + _THE_FILE + r"(?P<path>.+?)", _write_into),
    _rule(r"(?:write|create|save)\s+" + _THE_FILE + r"(?P<path>\S+)(?P<content>):?", _write),
    _rule(
        r"(?:list|ls|show|what|which)(?: me)?(?: are)?(?: all)?(?: of)?(?: the| my)? files?(?: are| is)?"
        r"(?: there| here)*(?: (?:in|under|of|matching|from)(?: the)?(?: (?:folder|directory))? (?P<where>.+?)"
        r"(?: (?:folder|directory))?)?",
        _list,
    ),
    _rule(r"(?:list|ls|show)(?: me)?(?: the)? (?P<where>'.*?'|\".*?\"|`.*?`|\S+) (?:folder|directory)", _list),
    _rule(r"(?:ls|list|dir)(?: everything| all| it)?(?: (?P<where>'.*?'|\".*?\"|`.*?`|\S+?))?", _list),
    _rule(
        r"(?:find|locate|where(?:'s| is| are)|look for)(?: me)?(?: all)?(?: the)?(?: files?)?"
        r"(?: (?:named|called|matching))? (?P<name>'.*?'|\".*?\"|`.*?`|\S+?)",
        _find,
    ),
    _rule(
        r"(?:search|find|grep|look|where is|where's|locate)(?: me)?(?: for)?(?: all)?(?: the)?(?: text| word| string)? "
        r"(?P<text>'.*?'|\".*?\"|`.*?`|.+?)(?: (?:in|inside|within|under) (?P<glob>.+?))?",
        _search,
    ),
    _rule(
        r"(?:run|execute|exec)(?: the)?(?: (?:shell )?command| this)?:?(?: (?P<command>.+?))?",
        _run,
        _VERBATIM_END,
    ),
    _rule(r"[!$]\s*(?P<command>.+?)", _run, _VERBATIM_END),
    _rule(
        r"(?:read|open|cat|show|view|display|print|look at|explain|describe)(?: me)?(?: what(?:'s| is) in)? "
        + _THE_FILE
        + r"(?P<rest>.+?)",
        _read,
    ),
    _rule(r"what(?:'s| is)(?: inside| in) " + _THE_FILE + r"(?P<rest>.+?)", _read),
)
