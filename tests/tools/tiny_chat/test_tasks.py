import itertools
import re

import pytest
from tiny_chat import facts, tasks
from tiny_chat.tasks import Source

TIMES = 200


def answers(task, seed=3):
    source = Source(seed)
    return [task(source) for _ in range(TIMES)]


@pytest.mark.parametrize("task, operate", [(tasks.add, "+"), (tasks.subtract, "-"), (tasks.multiply, "*")])
def test_arithmetic_is_about_the_asked_numbers_and_right(task, operate):
    for question, answer in answers(task):
        a, b, result = map(int, re.fullmatch(rf"(\d+)\{operate}(\d+)=(\d+)", answer).groups())
        assert sorted(map(int, re.findall(r"\d+", question))) == sorted([a, b])
        assert result == {"+": a + b, "-": a - b, "*": a * b}[operate]


def test_sorted_numbers_are_the_asked_ones_in_order():
    for question, answer in answers(tasks.sort):
        numbers = answer.split(", ")
        assert numbers == sorted(numbers) == sorted(re.findall(r"\d", question))


def test_counting_takes_steps_of_one_between_the_asked_numbers():
    for question, answer in answers(tasks.count):
        first, last = ["1", *re.findall(r"\d+", question)][-2:]
        numbers = list(map(int, answer.split(", ")))
        assert (numbers[0], numbers[-1]) == (int(first), int(last))
        assert {abs(a - b) for a, b in itertools.pairwise(numbers)} <= {1}


def test_every_capital_is_asked_for():
    asked = {
        answer for _, answer in answers(tasks.capital) + answers(tasks.capital, 4) + answers(tasks.capital, 5)
    }
    for country, city in facts.CAPITALS.items():
        assert f"The capital of {country} is {city}." in asked


def test_what_is_made_up_for_training_is_never_held_out():
    def made_up(held_out):
        source = Source(1, held_out)
        return {tasks.made_up_name(source) for _ in range(2000)}

    assert made_up(held_out=True).isdisjoint(made_up(held_out=False))


def test_the_same_seed_asks_the_same_questions():
    one, same, other = Source(5), Source(5), Source(6)
    asked = [tasks.question(one) for _ in range(50)]
    assert asked == [tasks.question(same) for _ in range(50)]
    assert asked != [tasks.question(other) for _ in range(50)]
