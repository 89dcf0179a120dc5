"""Views of and actions on the window by the user: shares, omissions, undo, restore; stored messages stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.context.measure import Filling, WindowPart
from engine.context.omissions import CLEARED, REMOVED_IMAGE
from engine.conversation import Conversation
from engine.executor import context_manager
from engine.executor.context_manager import ContextReport, Edited
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Refused
from engine.machine.messages import Usage
from engine.machine.states import Errored, Idle
from engine.machine.views import OmissionKind
from engine.updates import ContextChanged
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.instructions import FixedInstructions
from tests.support.scripted_provider import WINDOW, Fail, Hang, Reply, ScriptedCall, Text

LONG = '{"command": "' + "y" * 9_000 + '"}'
USAGE = Usage(2_000, 50, 1_000, 17_000)
SETTINGS = EngineSettings(auto_title=False, instructions=FixedInstructions("Keep lines short. " * 40))
SUMMARY = Reply((Text("the plan is kept"),), when="Write the summary now.")
PLAIN = Reply((Text("and so on"),), usage=USAGE, when="[go]")
ROUND = Reply((ScriptedCall("bash", LONG),), usage=USAGE, when="[go]")
REPLIES = (SUMMARY, ROUND, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN)


async def started(harness: EngineHarness, messages: int = 3) -> Conversation:
    conversation = await harness.conversation()
    image = await conversation.attach(b"\x89PNG")
    for number in range(messages):
        await conversation.say(f"[go] {number}", (image.id,) if not number else ())
        await conversation.wait_idle()
    return conversation


def part(report: ContextReport, filling: Filling) -> WindowPart:
    return next(one for one in report.measured.parts if one.filling is filling)


def sent(harness: EngineHarness) -> str:
    return str(harness.provider.requests[-1].messages)


async def test_the_shares_add_up_to_what_the_provider_counted(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness)
        report = await conversation.context.report()
        assert (report.tokens, report.window, report.estimated) == (20_050, WINDOW, False)
        assert report.usage == USAGE
        assert sum(count for _, count in report.measured.shares) == 20_050
        shares = dict(report.measured.shares)
        assert shares[Filling.RESULTS] > shares[Filling.INSTRUCTIONS] > 0
        assert shares[Filling.SUMMARY] == 0
        largest = report.measured.parts[0]
        assert (largest.seq, largest.filling) == (2, Filling.HISTORY), "the call names what it runs"
        assert part(report, Filling.RESULTS).label.startswith("bash yyy")
        assert (report.images, report.shortens, report.omitted) == (1, 1, 0)


async def test_nothing_sent_yet_is_a_guess(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, settings=SETTINGS) as harness:
        report = await (await harness.conversation()).context.report()
        assert report.estimated
        assert report.tokens == report.measured.total > 0
        assert (report.summarizable, report.earlier) == (0, None)


async def test_pruning_shortens_then_clears_and_each_step_is_undone(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness)
        before = await harness.store.messages(conversation.id)
        first = await conversation.context.prune()
        assert isinstance(first, Edited)
        assert (first.count, first.before) == (1, 20_050)
        assert first.after < 18_000
        told = harness.seen(ContextChanged)[-1]
        assert (told.tokens, told.estimated) == (first.after, True)
        await run_turn(conversation, "[go] shortened?")
        assert "\\n...\\n" in sent(harness)
        assert isinstance(await conversation.context.prune(), Edited)
        assert await conversation.context.prune() == Refused(context_manager.NOTHING_TO_SHORTEN)
        await run_turn(conversation, "[go] cleared?")
        assert CLEARED in sent(harness)
        assert isinstance(await conversation.context.undo(), Edited)
        assert [each.kind for each in conversation.record.omitted] == [OmissionKind.SHORTENED]
        assert isinstance(await conversation.context.undo(), Edited)
        assert conversation.record.omitted == ()
        assert await conversation.context.undo() == Refused(context_manager.NOTHING_TO_UNDO)
        assert (await harness.store.messages(conversation.id))[: len(before)] == before


async def test_an_image_leaves_every_later_request_and_comes_back(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness)
        assert harness.provider.requests[-1].images
        assert isinstance(await conversation.context.strip_images(), Edited)
        assert await conversation.context.strip_images() == Refused(context_manager.NO_IMAGES)
        await run_turn(conversation, "[go] without it")
        assert harness.provider.requests[-1].images == {}
        assert REMOVED_IMAGE in sent(harness)
        gone = part(await conversation.context.report(), Filling.IMAGES)
        assert (gone.omission, gone.tokens) == (OmissionKind.IMAGE, 0)
        assert isinstance(await conversation.context.put_back(gone), Edited)
        await run_turn(conversation, "[go] with it")
        assert harness.provider.requests[-1].images


async def test_one_result_is_shortened_then_cleared_then_put_back(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness, 1)
        for kind in (OmissionKind.SHORTENED, OmissionKind.CLEARED):
            assert isinstance(
                await conversation.context.omit(part(await conversation.context.report(), Filling.RESULTS)), Edited
            )
            assert [each.kind for each in conversation.record.omitted] == [kind]
        assert isinstance(await conversation.context.put_back(), Edited)
        assert await conversation.context.put_back() == Refused(context_manager.NOTHING_OMITTED)
        words = part(await conversation.context.report(), Filling.HISTORY)
        assert await conversation.context.omit(words) == Refused(context_manager.NOT_A_RESULT)


async def test_the_view_before_a_summary_is_put_back_with_every_message(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness, 4)
        whole = harness.provider.requests[-1].messages
        await conversation.context.prune()
        await conversation.context.compact()
        await conversation.wait_idle()
        report = await conversation.context.report()
        assert report.earlier is not None
        assert dict(report.measured.shares)[Filling.SUMMARY] > 0
        assert await conversation.context.undo() == Refused(context_manager.NOTHING_TO_UNDO)
        again = await conversation.context.restore()
        assert isinstance(again, Edited)
        assert again.after >= report.earlier.tokens > again.before
        assert conversation.record.summary == ""
        await conversation.context.put_back()
        await run_turn(conversation, "[go] all of it")
        assert harness.provider.requests[-1].messages[: len(whole)] == whole
        assert await conversation.context.restore() == Refused(context_manager.NEVER_COMPACTED)


async def test_what_was_left_out_survives_a_restart_and_a_fork_up_to_the_cut(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness)
        await conversation.context.prune()
        await conversation.context.strip_images()
        omitted = conversation.record.omitted
        assert [each.seq for each in omitted] == [1, 3]
        whole = await harness.engine.fork(conversation.id)
        part_of_it = await harness.engine.fork(conversation.id, 2)
        assert whole.record.omitted == omitted
        assert part_of_it.record.omitted == omitted[:1]
    async with engine_harness(tmp_path, settings=SETTINGS) as harness:
        assert (await harness.engine.open(conversation.id)).record.omitted == omitted


async def test_nothing_is_changed_while_a_run_is_under_way_or_another_process_owns_it(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, *REPLIES, tool=tool, settings=SETTINGS) as harness:
        conversation = await harness.start("[go] on")
        await tool.started.wait()
        report = await conversation.context.report()
        assert report.measured.messages == 2
        image = await conversation.context.strip_images()
        assert isinstance(image, Refused)
        call = part(report, Filling.HISTORY)
        assert isinstance(await conversation.context.omit(call), Refused)
        conversation.cancel()
        await conversation.wait_idle()


async def test_an_edit_while_a_message_is_on_its_way_is_refused_or_counts(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when="[go]")
    async with engine_harness(tmp_path, SUMMARY, ROUND, PLAIN, PLAIN, PLAIN, hangs, settings=SETTINGS) as harness:
        conversation = await started(harness)
        asking = asyncio.create_task(conversation.say("[go] now"))
        edited = await conversation.context.prune()
        await asking
        await until(lambda: len(harness.provider.requests) == 5)
        assert isinstance(edited, Refused) or "\\n...\\n" in sent(harness)
        conversation.cancel()
        await conversation.wait_idle()


async def test_an_image_that_the_model_refuses_makes_no_later_request_fail(tmp_path: Path) -> None:
    refusal = Reply((Fail("the server refused an image: too large.", "refused_image", retryable=False),), when="[go]")
    async with engine_harness(tmp_path, PLAIN, refusal, PLAIN, settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        image = await conversation.attach(b"\x89PNG")
        for number in range(2):
            await conversation.say(f"[go] {number}", (image.id,))
            await conversation.wait_idle()
        assert isinstance(conversation.state, Errored)
        assert conversation.state.message == (
            "the server refused an image: too large. It is left out from now on; "
            "Enter retries without, /context restores."
        )
        await conversation.retry()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert sent(harness).count(REMOVED_IMAGE) == 1, "the image that was accepted before stays"
        assert [(each.seq, each.kind) for each in conversation.record.omitted] == [(3, OmissionKind.IMAGE)]


async def test_an_edit_of_a_view_that_was_changed_meanwhile_takes_nothing_back(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness)
        edits = await asyncio.gather(conversation.context.prune(), conversation.context.strip_images())
        assert [edit for edit in edits if isinstance(edit, Refused)] == [Refused(context_manager.CHANGED)]
        [made] = [edit for edit in edits if isinstance(edit, Edited)]
        assert len(conversation.record.omitted) == made.count


async def test_the_prompt_that_is_shown_is_the_one_that_is_sent(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness, 1)
        shown, request = await conversation.context.prompt(), harness.provider.requests[-1]
        texts = [one.section.text for one in shown.sections]
        assert ("\n\n".join(texts[:-1]), texts[-1]) == request.system
        assert shown.tools == tuple(tool.name for tool in request.tools)
        origins = {one.section.name: one.section.origin for one in shown.sections}
        assert (origins["AGENTS.md"], origins["Safety"]) == ("/work/AGENTS.md", "built-in")


@pytest.mark.parametrize("counted", [False, True])
async def test_the_tokens_of_the_prompts_sections_are_two_shares_of_the_context(tmp_path: Path, counted: bool) -> None:
    async with engine_harness(tmp_path, *REPLIES, settings=SETTINGS) as harness:
        conversation = await started(harness, 1) if counted else await harness.conversation()
        shares = dict((await conversation.context.report()).measured.shares)
        shown = await conversation.context.prompt()
        sums = dict.fromkeys((Filling.SYSTEM, Filling.INSTRUCTIONS), 0)
        for one in shown.sections:
            assert one.tokens > 0
            sums[one.filling] += one.tokens
        assert sums == {filling: shares[filling] for filling in sums}
        assert shown.tools_tokens == shares[Filling.TOOLS]
        assert (conversation.record.context_tokens > 0) is counted
