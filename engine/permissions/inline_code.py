"""Code in the words of a command line that surely starts no program; anything not known to be plain is not."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Final

from engine.permissions.shell_parts import Word

LONGEST: Final = 4_000
"""Characters of code that are read."""
_NAMES: Final = """
    print len range str int float bool list dict set tuple sorted sum min max abs any all enumerate zip reversed round
    repr type isinstance map filter chr ord hex bin divmod True False None json sys re math datetime time random
    collections itertools functools statistics csv textwrap string platform base64 hashlib uuid decimal fractions
    tomllib html pathlib Path Counter defaultdict
"""
_ATTRIBUTES: Final = """
    load loads dumps stdin stdout argv version version_info path get keys values items append extend join split strip
    lstrip rstrip splitlines replace startswith endswith lower upper title format encode decode read readlines
    readline read_text exists name stem suffix sub findall match search group groups sqrt pi floor ceil now today
    isoformat strftime time sha256 md5 hexdigest b64encode b64decode uuid4 count index sort pop update add choice
    randint mean median platform executable Path glob rglob iterdir parent is_file is_dir most_common DictReader
    reader
"""
_PLAIN: Final = frozenset(_NAMES.split())
"""Names that Python code may use; none of them leads to another module."""
_PLAIN_ATTRIBUTES: Final = frozenset(_ATTRIBUTES.split())
_ADDRESS: Final = r"(?:\d+|\$|/[^/\n]*/)"
_SED: Final = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,{_ADDRESS})?)?\s*!?\s*(?:[pdqDNGhHgxn=]|[ais]\\?[ \t][^\n]*|s(?P<sign>[^\w\s\\])"
    r"(?:(?!(?P=sign))[^\\\n]|\\.)*(?P=sign)(?:(?!(?P=sign))[^\\\n]|\\.)*(?P=sign)[gpIi\d]*)\s*"
)
_AWK_RUNS: Final = re.compile(r"system|getline|@|print.*[|>]", re.DOTALL)


def is_plain_code(names: frozenset[str], words: tuple[Word, ...]) -> bool:
    """True where the code in the words of sed, awk or Python starts no program."""
    if "python" in names and (len(words) < 3 or not words[2].is_known):
        return False
    if names & {"sed", "gsed"}:
        return _is_plain_sed([word.text for word in words[1:]])
    if names & {"awk", "gawk", "mawk", "nawk"}:
        return _is_plain_awk([word.text for word in words[1:]])
    return "python" in names and [word.text for word in words[1:2]] == ["-c"] and _is_plain_python(words[2].text)


def _is_plain_sed(words: list[str]) -> bool:
    given = [words[n + 1] for n, one in enumerate(words[:-1]) if one in {"-e", "--expression", "-ne", "-re", "-Ee"}]
    options = [one for one in words if one.startswith("-") and one not in {"-e", "--expression", "-ne", "-re", "-Ee"}]
    if any(
        not re.fullmatch(r"-[nEriszu]+(?:\.\w+)?|--quiet|--in-place(?:=\.\w+)?|--version|--help", one)
        for one in options
    ):
        return False
    scripts = given or [one for one in words if not one.startswith("-")][:1]
    return all(len(one) < LONGEST and _is_sed_list(one) for one in scripts)


def _is_sed_list(script: str) -> bool:
    """True for substitutions and simple commands with `;` or lines between."""
    place = 0
    while place < len(script):
        found = _SED.match(script, place)
        if found is None or found.end() == place:
            return False
        place = found.end()
        if place < len(script):
            if script[place] not in ";\n":
                return False
            place += 1
    return True


def _is_plain_awk(words: list[str]) -> bool:
    if any(one.startswith("-") and not re.match(r"-[Fv]|--version|--help|--csv", one) for one in words):
        return False
    return not any(len(one) > LONGEST or _AWK_RUNS.search(one) for one in words)


def _is_plain_python(code: str) -> bool:
    try:
        tree = ast.parse(code[: LONGEST + 1]) if len(code) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return False
    nodes = list(ast.walk(tree))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own = (own | {node.arg for node in nodes if isinstance(node, ast.arg)}) - set(dir(builtins))
    reading = {id(node.func) for node in nodes if isinstance(node, ast.Call) and _reads_a_file(node)}
    return all(_is_plain_node(node, own) or id(node) in reading for node in nodes)


def _reads_a_file(call: ast.Call) -> bool:
    """True for `open` with no mode."""
    named = [one for one in call.keywords if one.arg != "encoding"]
    return isinstance(call.func, ast.Name) and call.func.id == "open" and len(call.args) == 1 and not named


def _is_plain_node(node: ast.AST, own: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _PLAIN or node.id in own
    if isinstance(node, ast.Attribute):
        return node.attr in _PLAIN_ATTRIBUTES
    if isinstance(node, ast.Import):
        return all(one.name in _PLAIN and one.asname is None for one in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in _PLAIN and all(one.name in _PLAIN and one.asname is None for one in node.names)
    return not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
