"""A model that makes no progress: it is warned, then its run ends with one sentence (SPEC CLAW-60)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.executor.loop_guard import LoopGuard, LoopVerdict
from engine.machine.messages import Origin, TextBlock, ToolCall, ToolResultBlock
from engine.machine.states import Idle
from engine.updates import MessageSaved, RunEnded
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import ToolClass


def asks(arguments: str = '{"command": "ls"}', times: int = 1) -> tuple[Reply, ...]:
    return tuple(Reply((ScriptedCall("bash", arguments),)) for _ in range(times))


def results(harness: EngineHarness) -> list[str]:
    blocks = [block for update in harness.seen(MessageSaved) for block in update.message.blocks]
    parts = [part for block in blocks if isinstance(block, ToolResultBlock) for part in block.content]
    return [part.text for part in parts if isinstance(part, TextBlock)]


async def test_the_third_time_is_said_and_the_fifth_ends_the_run(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *asks(times=140)) as harness:
        conversation = await harness.start("go")
        assert isinstance(await conversation.wait_idle(), Idle)
        assert len(harness.tool.calls) == 5
        assert ["3 times. " in text for text in results(harness)] == [False, False, True, False, False]
        assert "4 times. " in results(harness)[3]
        (ended,) = harness.seen(RunEnded)
        assert (ended.status, ended.error_code) == ("failure", "loop")
        assert ended.error == "Stopped: repeated tool calls without progress"
        notices = [update.message for update in harness.seen(MessageSaved) if update.message.origin is Origin.NOTICE]
        assert [notice.blocks for notice in notices] == [(TextBlock(ended.error),)]


async def test_the_next_message_begins_to_count_anew(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *asks(times=9), Reply((Text("done"),))) as harness:
        conversation = await harness.run("go")
        await run_turn(conversation, "again")
        assert [ended.error_code for ended in harness.seen(RunEnded)] == ["loop", ""]


async def test_a_sub_command_that_is_never_run_counts_too(tmp_path: Path) -> None:
    """Each call names other arguments, and each gets the same refusal."""
    script = [Reply((ScriptedCall("nothing", f'{{"n": {n}}}'),)) for n in range(20)]
    async with engine_harness(tmp_path, *script) as harness:
        await harness.run("go")
        assert len(harness.provider.requests) == 6
        (ended,) = harness.seen(RunEnded)
        assert ended.error_code == "loop"


async def test_forty_different_reads_end_no_run(tmp_path: Path) -> None:
    tool = StubTool("read_file", ToolClass.READ)
    script = [Reply((ScriptedCall("read_file", f'{{"command": "{n}"}}'),)) for n in range(40)]
    async with engine_harness(tmp_path, *script, Reply((Text("read"),)), tool=tool) as harness:
        await harness.run("go")
        assert len(tool.calls) == 40
        (ended,) = harness.seen(RunEnded)
        assert ended.status == "success"


def judged(guard: LoopGuard, name: str, arguments: str, result: str) -> LoopVerdict:
    kinds = {"write_file": ToolClass.EDIT, "patch": ToolClass.EDIT, "bash": ToolClass.RUN, "unknown": None}
    failed = result.startswith("error")
    return guard.judge(ToolCall("t", name, arguments), kinds.get(name, ToolClass.READ), result, failed=failed)


def levels(*calls: tuple[str, str, str]) -> str:
    """One sign a call: `.` nothing, `w` warned, `S` stopped."""
    guard = LoopGuard()
    verdicts = [judged(guard, *call) for call in calls]
    return "".join("S" if verdict.stops else "w" if verdict.warning else "." for verdict in verdicts)


def reads(places: Sequence[int]) -> list[tuple[str, str, str]]:
    """Reads of these places: the same place gives another result each time, so that only the series counts."""
    return [("read_file", f'{{"path": "{place}"}}', f"result {number}") for number, place in enumerate(places)]


SAME = ("read_file", '{"path": "a"}', "text of a")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([SAME] * 5, "..wwS", id="the same call"),
        pytest.param([("bash", "{}", "x")] * 5, "..wwS", id="a command too"),
        pytest.param([("write_file", "{}", "wrote")] * 5, "..wwS", id="a write too"),
        pytest.param([("think", "{}", "ok")] * 5, "..wwS", id="a thought too"),
        pytest.param([("bash", "{}", f"{n}") for n in range(6)], "......", id="another result"),
        pytest.param(
            [("bash", '{"a": 1, "b": 2}', "x"), ("bash", '{"b":2,"a":1}', "x"), ("bash", '{"a":1,  "b":2}', "x")],
            "..w",
            id="the same arguments in another order",
        ),
        pytest.param([("bash", "{", "x"), ("bash", "not json", "x"), ("bash", "{", "x")], "...", id="no JSON"),
        pytest.param([SAME, ("bash", "{}", "1")] * 2 + [SAME], "....w", id="with other calls in between"),
        pytest.param([SAME, ("bash", "{}", "y")] * 4, "....wwww", id="two calls in turn"),
        pytest.param(
            [SAME, *(("bash", f"{n}", f"{n}") for n in range(28)), SAME, SAME], "." * 30 + ".", id="31 calls apart"
        ),
        pytest.param(
            [SAME, *(("bash", f"{n}", f"{n}") for n in range(27)), SAME, SAME], "." * 29 + "w", id="30 calls apart"
        ),
        pytest.param([("job_output", "{}", "still running")] * 40, "." * 40, id="waiting for a job"),
        pytest.param([("search", f"{n}", "none") for n in range(6)], "...wwS", id="the same result to other arguments"),
        pytest.param([("search", f"{n}", "none") for n in range(3)], "...", id="three times"),
        pytest.param([("search", f"{n % 3}", "none") for n in range(6)], "......", id="three arguments twice"),
        pytest.param([("bash", f"{n}", "(no output)") for n in range(7)], ".......", id="silent commands"),
        pytest.param([("think", f"{n}", "ok") for n in range(40)], "." * 40, id="thoughts"),
        pytest.param([("patch", f"{n}", "changed") for n in range(7)], ".......", id="edits that say little"),
        pytest.param(
            [("patch", f"{n}", "error: no such text") for n in range(6)], "...wwS", id="edits that fail alike"
        ),
        pytest.param([("unknown", f"{n}", "denied") for n in range(6)], "...wwS", id="refusals"),
        pytest.param(
            [SAME, SAME, ("patch", "1", "changed"), SAME, SAME, SAME], ".....w", id="reading again after a change"
        ),
        pytest.param(
            [SAME, SAME, ("patch", "1", "error"), SAME], "...w", id="reading again after a change that failed"
        ),
        pytest.param(reads([0, 1, 2, 0, 1, 2, 0]), ".......", id="seven repetitive reads"),
        pytest.param(reads([0, 1, 2, 0, 1, 2, 0, 1]), ".......w", id="eight repetitive reads"),
        pytest.param(reads([0, 1, 2] * 4)[:11], ".......wwww"[:11], id="eleven repetitive reads"),
        pytest.param(reads([0, 1, 2] * 4), ".......wwwwS", id="twelve repetitive reads"),
        pytest.param(
            [call for read in reads([0, 1, 2] * 4) for call in (read, ("bash", read[2], read[2]))][:23],
            ".............." + "w.w.w.w.S",
            id="commands in between neither count nor reset",
        ),
        pytest.param(
            [*reads([0, 1, 2] * 3)[:7], ("write_file", "{}", "wrote"), *reads([0, 1, 2] * 3)[:7]],
            "." * 15,
            id="a write resets the series",
        ),
        pytest.param(reads([n * 4 // 5 for n in range(23)]), "." * 23, id="23 varied reads"),
        pytest.param(reads([n * 4 // 5 for n in range(35)]), "." * 23 + "w" * 12, id="35 varied reads"),
        pytest.param(reads([n * 4 // 5 for n in range(36)]), "." * 23 + "w" * 12 + "S", id="36 varied reads"),
        pytest.param(reads(range(200)), "." * 200, id="200 different reads"),
    ],
)
def test_thresholds(calls: list[tuple[str, str, str]], expected: str) -> None:
    assert levels(*calls) == expected


@pytest.mark.parametrize(
    ("places", "eighth"),
    [
        pytest.param([0, 1, 2, 3, 0, 1, 2, 3], "w", id="half of them different"),
        pytest.param([0, 1, 2, 3, 4, 0, 1, 2], ".", id="five of eight different"),
        pytest.param([0, 1, 2, 3, 4, 5, 0, 1, 2, 3], "w", id="exactly 60 per cent"),
    ],
)
def test_the_share_of_different_reads_decides_which_threshold_counts(places: list[int], eighth: str) -> None:
    assert levels(*reads(places))[-1] == eighth


def test_no_run_ends_that_was_not_warned() -> None:
    """Twenty varied reads become repetitive with one more, far beyond the lower threshold."""
    guard = LoopGuard()
    places = [*range(13), *[0] * 10]
    verdicts = [judged(guard, *call) for call in reads(places)]
    warned = [place for place, verdict in enumerate(verdicts) if verdict.warning]
    assert [verdict.stops for verdict in verdicts].index(True) == warned[0] + 1 > 12


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (
            [SAME] * 3,
            "This same call has given this same result 3 times. Do something else, or say what keeps you from "
            "going on; at 5 the run ends.",
        ),
        (
            [("search", f"{n}", "none") for n in range(4)],
            "4 different calls of search have given this same result. Do "
            "something else, or say what keeps you from going on; at 6 the run ends.",
        ),
        (
            reads([0, 1, 2] * 3)[:8],
            "8 reads in a row without a change, some of them repeated. Do something else, or say "
            "what keeps you from going on; at 12 the run ends.",
        ),
        ([SAME] * 5, "This same call has given this same result 5 times. The run ends here."),
    ],
)
def test_the_model_reads_what_repeats_and_when_the_run_ends(calls: list[tuple[str, str, str]], said: str) -> None:
    guard = LoopGuard()
    assert [judged(guard, *call) for call in calls][-1].warning == f"\n\n[{said}]"


def replies(*batches: Sequence[tuple[str, str, str]]) -> list[list[LoopVerdict]]:
    """Verdicts of one guard about the calls of each reply."""
    guard = LoopGuard()
    kinds = {"patch": ToolClass.EDIT, "bash": ToolClass.RUN}
    return [
        [
            guard.judge(
                ToolCall("t", name, arguments),
                kinds.get(name, ToolClass.READ),
                result,
                reply=number,
                left=len(calls) - place - 1,
            )
            for place, (name, arguments, result) in enumerate(calls)
        ]
        for number, calls in enumerate(batches, 1)
    ]


def signs(verdicts: Sequence[Sequence[LoopVerdict]]) -> list[str]:
    return ["".join("S" if one.stops else "w" if one.warning else "." for one in reply) for reply in verdicts]


NOTHING = [("search", f'{{"pattern": "{n}"}}', "no match") for n in range(20)]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        pytest.param([NOTHING[:8]], ["...wwwww"], id="eight searches at once end nothing"),
        pytest.param([[SAME] * 9], ["..wwwwwww"], id="nor does the same call nine times at once"),
        pytest.param([NOTHING[:8], NOTHING[8:9]], ["...wwwww", "S"], id="the next one does, as the warning says"),
        pytest.param([NOTHING[:8], NOTHING[8:16]], ["...wwwww", "wwwwwwwS"], id="with the last call of its reply"),
        pytest.param(
            [NOTHING[:8], [*NOTHING[8:10], ("read_file", "{}", "text")]],
            ["...wwwww", "ww."],
            id="unless one finds more",
        ),
        pytest.param(
            [NOTHING[:8], [("read_file", "{}", "text"), *NOTHING[8:10]], NOTHING[10:11]],
            ["...wwwww", ".ww", "S"],
            id="whichever comes first",
        ),
        pytest.param(
            [[SAME, ("bash", f"{n}", f"{n}")] for n in range(5)],
            ["..", "..", "w.", "w.", "wS"],
            id="the same call beside a clock",
        ),
        pytest.param(
            [NOTHING[:4], [("find_files", f"{n}", "no match") for n in range(8)]],
            ["...w", "...wwwww"],
            id="a warning about another tool does not count",
        ),
        pytest.param(
            [NOTHING[:8], [*NOTHING[8:10], ("patch", "1", "changed")]], ["...wwwww", "ww."], id="unless a file changes"
        ),
    ],
)
def test_a_reply_is_judged_as_one_step_and_a_warning_counts_once_it_was_read(
    batches: list[list[tuple[str, str, str]]], expected: list[str]
) -> None:
    assert signs(replies(*batches)) == expected


def test_the_warnings_of_one_reply_name_the_same_count_and_it_holds() -> None:
    first, second = replies(NOTHING[:8], NOTHING[8:9])
    assert {one.warning.rsplit(";", 1)[1] for one in first[3:]} == {" at 9 the run ends.]"}
    assert second[0].warning == ("\n\n[9 different calls of search have given this same result. The run ends here.]")


async def test_a_model_reads_the_warning_about_eight_calls_that_it_made_at_once(tmp_path: Path) -> None:
    """Each is refused alike, like eight searches without a match."""
    calls = tuple(ScriptedCall("nothing", f'{{"n": {n}}}') for n in range(8))
    async with engine_harness(tmp_path, Reply(calls), Reply((Text("I see"),))) as harness:
        await harness.run("go")
        (ended,) = harness.seen(RunEnded)
        assert ended.status == "success"
        assert [text.count("at 9 the run ends") for text in results(harness)] == [0, 0, 0, 1, 1, 1, 1, 1]
