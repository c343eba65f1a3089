"""The checks of bench/serve_soak.py fail on what they must fail on."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from configparser import ConfigParser
from pathlib import Path

import pytest
from raw_http import Answer, Head
from serve_soak import Soak, checks, plan, write_models
from soak_visits import BUSY, PROMPTS, SWAPPED, WRITERS, Client, Expected, Life, Lost, Tally, written_text

STREAM = Head(200, {"content-type": "text/event-stream"})
WRITTEN = {"old": "old's", "new": "new's"} | {f"writer{n}": f"{n}'s" for n in range(WRITERS)}


class Writes(random.Random):
    """A client that asks one model for texts, and leaves nothing to chance."""

    def __init__(self, model: str) -> None:
        super().__init__(1)
        self.model = model

    def choices(self, visits, weights):
        return [visits[0]]

    def choice(self, models):
        return self.model

    def uniform(self, least, most):
        return 0


def visited(
    answer: object, model: str = "writer0", life: Life | None = None, swapped: tuple[str, ...] = ("old",)
) -> Tally:
    """After one visit, which gets that answer, that error, or what the answer's function gives."""
    expected = Expected({file: [text] * PROMPTS for file, text in WRITTEN.items()})
    expected.swapped = list(swapped)
    client = Client("c", expected, Tally(), life or Life(0))
    client.random = Writes(model)

    async def asked(request: bytes) -> Answer:
        given = answer(client) if callable(answer) else answer
        if isinstance(given, BaseException):
            raise given
        return given

    client.asked = asked
    asyncio.run(client.visit(0))
    client.tally.counts["seen " + client.seen] += 1
    return client.tally


def text(content: str) -> Answer:
    return Answer(Head(200, {}), json.dumps({"content": content}).encode())


def the_problem(tally: Tally) -> str:
    (problem,) = tally.problems
    return problem


def test_a_models_own_text_passes():
    tally = visited(text("0's"))
    assert tally.counts["answered"] == 1 and not tally.problems


def test_another_models_text_is_found_and_whose_it_is():
    assert the_problem(visited(text("1's"))).startswith("ValueError: mixed answers: ['writer0'] never write")
    assert the_problem(visited(text("1's"))).endswith("but ['writer1']")


@pytest.mark.parametrize(
    ("swapped", "wrong"), [(("old",), "new's"), (("new",), "old's"), (("old", "new"), "0's")]
)
def test_a_text_of_a_file_that_is_not_in_place_is_found(swapped, wrong):
    assert "mixed answers" in the_problem(visited(text(wrong), SWAPPED, swapped=swapped))


def test_during_a_swap_either_file_may_answer():
    for content in ("old's", "new's"):
        assert not visited(text(content), SWAPPED, swapped=("old", "new")).problems


def test_who_asked_before_a_swap_may_hear_of_either_file_and_does_not_tell_that_the_new_one_is_there():
    def swap(client: Client) -> Answer:
        client.expected.swapped = ["new"]
        return text("old's")

    tally = visited(swap, SWAPPED)
    assert not tally.problems and tally.counts["seen "] == 1
    assert visited(text("old's"), SWAPPED).counts["seen old"] == 1


def test_a_stream_without_its_last_event_is_lost():
    events = [(0.0, json.dumps({"content": "0's", "stop": stops}).encode()) for stops in (False, True)]
    assert written_text(Answer(STREAM, events=events)) == "0's0's"
    with pytest.raises(Lost):
        written_text(Answer(STREAM, events=events[:1]))
    with pytest.raises(Lost):
        written_text(Answer(STREAM))


def test_a_broken_connection_is_lost_unless_the_server_was_ending_before():
    assert the_problem(visited(EOFError())).startswith("Lost")
    assert not visited(EOFError(), life=Life(0, "term")).problems
    assert not visited(EOFError(), life=Life(0, "kill")).problems


def test_a_connection_that_breaks_by_a_kill_is_not_lost_and_by_sigterm_it_is():
    def ends(how: str):
        def answer(client: Client) -> BaseException:
            client.life.ending = how
            return EOFError()

        return answer

    assert not visited(ends("kill")).problems
    assert the_problem(visited(ends("term"))).startswith("Lost")


def test_who_is_told_to_come_again_must_hear_when():
    assert visited(Answer(Head(BUSY, {"retry-after": "1"}))).counts["told to come again"] == 1
    assert "Retry-After" in the_problem(visited(Answer(Head(BUSY, {}))))


def test_an_error_of_the_server_is_a_problem():
    assert "500" in the_problem(visited(Answer(Head(500, {}), b"no")))


DONE = {
    "minutes": 60, "swaps": 50, "restarts": 20, "kills": 10, "full disks": 2, "models given back": 500,
    "blocks of prompts given back": 500, "cancelled": 1000, "tokens of prompts from the disk": 1,
    "answered": 1,
}  # fmt: skip


def failures(status: int = 0, problem: str = "", **fewer: int) -> list[str]:
    counts = Counter(DONE)
    counts.subtract({what.replace("_", " "): less for what, less in fewer.items()})
    tally = Tally(counts, Counter({problem: 2} if problem else {}))
    return [what for is_met, what in checks(tally, status, 60) if not is_met]


def test_a_soak_with_all_that_belongs_to_it_passes():
    assert failures() == []


@pytest.mark.parametrize("what", DONE)
def test_each_thing_that_did_not_happen_often_enough_fails_alone(what):
    assert failures(**{what.replace(" ", "_"): 1}) == [f"{DONE[what] - 1} {what}, goal {DONE[what]}"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"status": -11}, "exit status -11"),
        ({"problem": "ValueError: mixed answers: a"}, "2 mixed"),
        ({"problem": "Lost: writes"}, "2 lost"),
        ({"problem": "a failed write did not come about"}, "2 other"),
    ],
)
def test_each_problem_fails_alone(arguments, what):
    (failure,) = failures(**arguments)
    assert failure.startswith(what)


def test_a_plan_has_all_that_must_happen_in_its_time():
    events = plan(5, random.Random(1))
    assert Counter(what for _, what in events) == {"swap": 50, "restart": 20, "fill_the_disk": 2}
    moments = [moment for moment, _ in events]
    assert moments == sorted(moments) and moments[0] >= 0 and moments[-1] <= 300
    assert all(callable(getattr(Soak, what)) for _, what in events)


def test_answers_are_learnt_of_files_that_nobody_swaps(tmp_path):
    write_models(tmp_path)
    presets = ConfigParser()
    presets.read(tmp_path / "learnt.ini")
    files = [presets[name]["model"] for name in ("old", "new")]
    assert str(tmp_path / f"models/{SWAPPED}.gguf") not in files
    assert Path(files[0]).read_bytes() != Path(files[1]).read_bytes()
