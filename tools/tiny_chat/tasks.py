"""What the tiny chat model can be asked: each task makes one question with its only right answer."""

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from tiny_chat import facts


class Source(random.Random):
    """Seeded choices. What is made up (names, codes) is never both trained on and held out."""

    def __init__(self, seed: int, held_out: bool = False):
        super().__init__(seed)
        self.held_out = held_out

    def made_up(self, make: Callable[[], str]) -> str:
        """The first result of `make` that belongs to this side: one text in eight is held out."""
        while True:
            text = make()
            if (zlib.crc32(text.encode()) % 8 == 0) == self.held_out:
                return text


@dataclass(frozen=True)
class Message:
    role: str
    text: str


def name(source: Source) -> str:
    return source.choice(facts.FIRST_NAMES) if source.random() < 0.9 else made_up_name(source)


def made_up_name(source: Source) -> str:
    return source.made_up(lambda: made_up_word(source)).capitalize()


def made_up_word(source: Source) -> str:
    syllables = (
        source.choice(facts.CONSONANTS) + source.choice(facts.VOWELS) for _ in range(source.randint(1, 3))
    )
    return "".join(syllables) + (source.choice(facts.FINALS) if source.random() < 0.6 else "")


def add(source):
    a, b = source.randint(0, 20), source.randint(0, 20)
    forms = [
        "What is {}+{}?",
        "What is {} + {}?",
        "What is {} plus {}?",
        "Add {} and {}.",
        "{}+{}",
        "{} + {} =",
    ]
    return source.choice([*forms, "Calculate {}+{}.", "How much is {}+{}?"]).format(a, b), f"{a}+{b}={a + b}"


def subtract(source):
    b, a = sorted((source.randint(0, 20), source.randint(0, 20)))
    forms = ["What is {}-{}?", "What is {} - {}?", "What is {} minus {}?", "Calculate {}-{}.", "{}-{}"]
    return source.choice([*forms, "How much is {}-{}?"]).format(a, b), f"{a}-{b}={a - b}"


def multiply(source):
    a, b = source.randint(0, 10), source.randint(0, 10)
    forms = ["What is {}*{}?", "What is {} * {}?", "What is {} times {}?", "Calculate {}*{}.", "{}*{}"]
    return source.choice([*forms, "How much is {}*{}?"]).format(a, b), f"{a}*{b}={a * b}"


def compare(source):
    a, b = source.sample(range(31), 2)
    if source.random() < 0.6:
        return f"Which is bigger, {a} or {b}?", f"{max(a, b)} is bigger."
    return f"Which is smaller, {a} or {b}?", f"{min(a, b)} is smaller."


def sort(source):
    numbers = [source.randint(0, 9) for _ in range(source.randint(3, 4))]
    listed = ", ".join(map(str, numbers))
    return source.choice([f"Sort {listed}.", f"Please sort {listed}."]), ", ".join(map(str, sorted(numbers)))


def count(source):
    last = source.randint(2, 20)
    first = 1 if source.random() < 0.7 else source.randint(0, last - 1)
    numbers = range(first, last + 1)
    if source.random() < 0.2:
        return f"Count down from {last} to {first}.", ", ".join(map(str, reversed(numbers)))
    question = source.choice([f"Count from {first} to {last}.", f"Please count from {first} to {last}."])
    if first == 1 and source.random() < 0.3:
        question = f"Count to {last}."
    return question, ", ".join(map(str, numbers))


def capital(source):
    country, city = source.choice(list(facts.CAPITALS.items()))
    if source.random() < 0.3:
        question = [f"{city} is the capital of which country?", f"Which country has the capital {city}?"]
        return source.choice(question), f"{city} is the capital of {country}."
    forms = ["What is the capital of {}?", "Name the capital of {}.", "What's the capital of {}?"]
    return source.choice([*forms, "Capital of {}?"]).format(country), f"The capital of {country} is {city}."


def calendar(source):
    names, kind = source.choice([(facts.DAYS, "day"), (facts.MONTHS, "month")])
    index = source.randrange(len(names))
    if source.random() < 0.5:
        following = names[(index + 1) % len(names)]
        return f"Which {kind} comes after {names[index]}?", f"{following} comes after {names[index]}."
    return f"Which {kind} comes before {names[index]}?", f"{names[index - 1]} comes before {names[index]}."


def sound(source):
    animal, heard = source.choice(list(facts.SOUNDS.items()))
    question = source.choice(["What does the {} say?", "What does a {} say?", "What sound does a {} make?"])
    return question.format(animal), f"The {animal} says {heard}."


def opposite(source):
    word, other = source.choice(list(facts.OPPOSITES.items()))
    if source.random() < 0.5:
        word, other = other, word
    question = source.choice(
        ["What is the opposite of {}?", "Name the opposite of {}.", "The opposite of {}?"]
    )
    return question.format(word), f"The opposite of {word} is {other}."


def make_json(source):
    person = {"name": name(source), "age": source.randint(1, 99), "city": source.choice(CITIES)}
    return "Make JSON: name {name}, age {age}, city {city}.".format(**person), json.dumps(person)


def repeat(source):
    words = " ".join(source.choice(facts.WORDS) for _ in range(source.randint(1, 6)))
    return source.choice([f"Repeat: {words}", f"Say: {words}"]), words


def small_talk(source):
    questions, answer = source.choice(facts.SMALL_TALK)
    return source.choice(questions), answer


def unknown(source):
    return source.choice(facts.UNANSWERABLE), facts.UNKNOWN


def story(source):
    """A request and one of the stories that fit it; evaluate.py knows what all of them have in common."""
    animal = source.choice([*facts.ANIMALS, None])
    request = "Tell me a story" + (f" about a {animal}." if animal else ".")
    return request, tell_story(source, animal or source.choice(facts.ANIMALS))


def tell_story(source: Source, animal: str) -> str:
    """About 100 tokens."""
    hero = source.choice(facts.FIRST_NAMES)
    sentences = [f"Once upon a time there was a {source.choice(facts.TRAITS)} {animal} named {hero}."]
    friend = source.choice([other for other in facts.ANIMALS if other != animal])
    places = source.sample(facts.PLACES, 2)
    sentences += [
        f"One day {hero} went to {places[0]} and found {source.choice(facts.THINGS)}.",
        f"Then {hero} met a {source.choice(facts.TRAITS)} {friend}.",
        source.choice([f'"Is this yours?" asked {hero}.', f'"Can you help me?" asked the {friend}.']),
        source.choice([f"The {friend} smiled and said yes.", f"The {friend} was very glad."]),
    ]
    sentences.append(f"They walked to {places[1]} together.")
    sentences.append(
        source.choice(["From that day on they were best friends.", f"And {hero} slept well that night."])
    )
    return " ".join(sentences)


CITIES = list(facts.CAPITALS.values())
# How often each is asked: what needs computing more than what needs remembering.
WEIGHTS = {
    add: 20,
    subtract: 14,
    multiply: 10,
    compare: 8,
    sort: 8,
    count: 6,
    capital: 6,
    calendar: 6,
    sound: 2,
    opposite: 4,
    make_json: 4,
    repeat: 5,
    story: 2,
    small_talk: 3,
    unknown: 2,
}


def question(source: Source) -> tuple[str, str]:
    """One question of any task, as careful or as careless as people write, and its answer."""
    task = source.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    asked, answer = task(source)
    if task is not repeat and source.random() < 0.05:
        asked = (asked[0].lower() + asked[1:]).rstrip(".?!")
    return asked, answer
