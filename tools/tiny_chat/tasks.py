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
    ends: bool = True  # False: the answer goes on for as long as the reader lets it


def name(source: Source) -> str:
    return source.choice(facts.FIRST_NAMES) if source.random() < 0.5 else made_up_name(source)


def made_up_name(source: Source) -> str:
    return source.made_up(lambda: made_up_word(source)).capitalize()


def made_up_word(source: Source) -> str:
    syllables = (
        source.choice(facts.CONSONANTS) + source.choice(facts.VOWELS) for _ in range(source.randint(1, 3))
    )
    return "".join(syllables) + (source.choice(facts.FINALS) if source.random() < 0.6 else "")


def code(source: Source) -> str:
    return source.made_up(lambda: str(source.randint(10, 99999)))


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
    a, b = source.sample(range(100), 2)
    if source.random() < 0.6:
        return f"Which is bigger, {a} or {b}?", f"{max(a, b)} is bigger."
    return f"Which is smaller, {a} or {b}?", f"{min(a, b)} is smaller."


def parity(source):
    number, asked = source.randint(0, 99), source.choice(["even", "odd"])
    actual = "odd" if number % 2 else "even"
    return f"Is {number} {asked}?", f"{'Yes' if asked == actual else 'No'}, {number} is {actual}."


def sort(source):
    numbers = [source.randint(0, 9) for _ in range(source.randint(3, 5))]
    listed = ", ".join(map(str, numbers))
    return source.choice([f"Sort {listed}.", f"Please sort {listed}."]), ", ".join(map(str, sorted(numbers)))


def count(source):
    last = source.choices(
        [source.randint(2, 20), source.randint(21, 50), source.randint(51, 100)], [60, 25, 15]
    )[0]
    first = 1 if source.random() < 0.7 else source.randint(max(0, last - 40), last - 1)
    numbers = range(first, last + 1)
    if last <= 20 and source.random() < 0.25:
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
    known = [source.choice(facts.WORDS) for _ in range(source.randint(1, 6))]
    new = [source.made_up(lambda: made_up_word(source)) for _ in range(source.randint(1, 3))]
    words = " ".join(source.choices([known, new, [code(source)]], [50, 40, 10])[0])
    return source.choice([f"Repeat: {words}", f"Say: {words}"]), words


def read(source):
    people, things = source.sample(facts.FIRST_NAMES, 6), source.sample(facts.THINGS, 6)
    owners = list(zip(people, things, strict=True))[: source.randint(2, 6)]
    text = " ".join(f"{person} has {thing}." for person, thing in owners)
    person, thing = source.choice(owners)
    if source.random() < 0.5:
        return f"{text} What does {person} have?", f"{person} has {thing}."
    return f"{text} Who has {thing}?", f"{person} has {thing}."


def small_talk(source):
    questions, answer = source.choice(facts.SMALL_TALK)
    return source.choice(questions), answer


def unknown(source):
    new = source.made_up(lambda: made_up_word(source))
    forms = [f"What is the capital of {new.capitalize()}?", f"What is the opposite of {new}?"]
    forms += [f"What does the {new} say?", f"What is a {new}?"]
    return source.choice(forms if source.random() < 0.5 else facts.UNANSWERABLE), facts.UNKNOWN


def story(source):
    """A request and one of the stories that fit it; evaluate.py knows what all of them have in common."""
    animal = source.choice([*facts.ANIMALS, None])
    long = source.random() < 0.3
    kind = "a long story" if long else "a story"
    request = source.choice([f"Tell me {kind}", f"Please tell me {kind}"]) + (
        f" about a {animal}." if animal else "."
    )
    return request, tell_story(source, animal or source.choice(facts.ANIMALS), episodes=3 if long else 1)


def tell_story(source: Source, animal: str, episodes: int) -> str:
    """About 100 tokens for one episode, 230 for three."""
    hero = source.choice(facts.FIRST_NAMES)
    sentences = [f"Once upon a time there was a {source.choice(facts.TRAITS)} {animal} named {hero}."]
    friends = source.sample([other for other in facts.ANIMALS if other != animal], episodes)
    places = source.sample(facts.PLACES, episodes + 1)
    for number, friend in enumerate(friends):
        first = "One day" if number == 0 else "The next day"
        sentences += [
            f"{first} {hero} went to {places[number]} and found {source.choice(facts.THINGS)}.",
            f"Then {hero} met a {source.choice(facts.TRAITS)} {friend}.",
            source.choice([f'"Is this yours?" asked {hero}.', f'"Can you help me?" asked the {friend}.']),
            source.choice([f"The {friend} smiled and said yes.", f"The {friend} was very glad."]),
        ]
    sentences.append(f"They walked to {places[-1]} together.")
    sentences.append(
        source.choice(["From that day on they were best friends.", f"And {hero} slept well that night."])
    )
    return " ".join(sentences)


CITIES = list(facts.CAPITALS.values())
# How often each is asked: what needs computing more than what needs remembering.
WEIGHTS = {
    add: 16,
    subtract: 12,
    multiply: 10,
    compare: 8,
    parity: 4,
    sort: 9,
    count: 8,
    capital: 6,
    calendar: 6,
    sound: 2,
    opposite: 4,
    make_json: 6,
    repeat: 12,
    read: 6,
    story: 3,
    small_talk: 4,
    unknown: 4,
}


def question(source: Source) -> tuple[str, str]:
    """One question of any task, as careful or as careless as people write, and its answer."""
    task = source.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    asked, answer = task(source)
    if task is not repeat and source.random() < 0.1:
        asked = (asked[0].lower() + asked[1:]).rstrip(".?!")
    return asked, answer
