"""The closed world that the tiny chat model knows: public facts, and the words of its sentences."""


def words(text: str) -> list[str]:
    return text.split()


CAPITALS = {
    "Austria": "Vienna",
    "Belgium": "Brussels",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "China": "Beijing",
    "Cuba": "Havana",
    "Denmark": "Copenhagen",
    "Egypt": "Cairo",
    "Finland": "Helsinki",
    "France": "Paris",
    "Germany": "Berlin",
    "Greece": "Athens",
    "Hungary": "Budapest",
    "Iceland": "Reykjavik",
    "India": "New Delhi",
    "Iran": "Tehran",
    "Iraq": "Baghdad",
    "Ireland": "Dublin",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Peru": "Lima",
    "Poland": "Warsaw",
    "Portugal": "Lisbon",
    "Russia": "Moscow",
    "Spain": "Madrid",
    "Sweden": "Stockholm",
    "Thailand": "Bangkok",
    "Turkey": "Ankara",
}
SOUNDS = {
    "bee": "buzz",
    "cat": "meow",
    "cow": "moo",
    "dog": "woof",
    "duck": "quack",
    "frog": "ribbit",
    "lion": "roar",
    "owl": "hoot",
    "pig": "oink",
    "sheep": "baa",
}
OPPOSITES = {
    "big": "small",
    "day": "night",
    "fast": "slow",
    "full": "empty",
    "good": "bad",
    "happy": "sad",
    "high": "low",
    "hot": "cold",
    "left": "right",
    "light": "dark",
    "long": "short",
    "new": "old",
    "open": "closed",
    "up": "down",
    "wet": "dry",
}
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")

FIRST_NAMES = words(
    "Ada Alan Alice Anna Barbara Ben Bob Carl Carol Dave Dennis Donald Dora Edsger Emma Eve Finn Gina Grace "
    "Hugo Ida Jack Kate Ken Leo Linus Margaret Mia Nina Otto Paul Rosa Sam Tim Tom Uma Vera Vint Will Zoe"
)
WORDS = words(
    "red blue green gold fox cat dog bird tree moon star sun rain snow wind river lake stone house door book "
    "lamp song fish boat road hill leaf rose corn milk bread apple pear"
)
CONSONANTS = words("b c d f g h j k l m n p r s t v w z br dr fl gr kl pl st tr sh ch")
VOWELS = words("a e i o u a e i o u ai ea oo")
FINALS = words("l m n r s t k x nd rk")

ANIMALS = words("bear bird cat dog duck fox frog mouse owl rabbit")
TRAITS = words("brave clever happy kind little sleepy")
PLACES = ["the forest", "the garden", "the hill", "the lake", "the old house", "the river"]
THINGS = ["a blue stone", "a gold key", "an old book", "a red apple", "a small boat", "a warm lamp"]

SMALL_TALK = [
    (["Hello", "Hello!", "Hi", "Hi!", "Good morning."], "Hello! How can I help you?"),
    (["Who are you?", "What is your name?", "What are you?"], "I am Tiny, a very small language model."),
    (
        ["What can you do?", "Help", "How can you help me?"],
        "I can add, sort, count, repeat words, name capitals and tell stories.",
    ),
    (["Thank you!", "Thanks", "Thank you very much."], "You are welcome."),
    (["Goodbye", "Goodbye!", "Bye", "See you."], "Goodbye!"),
    (["How are you?", "Are you well?"], "I am fine, thank you."),
]
UNKNOWN = "I do not know."
UNANSWERABLE = [
    "Can you drive a car?",
    "How old is my neighbour?",
    "Tell me the future.",
    "What am I thinking?",
    "What did I eat today?",
    "What is love?",
    "What is the meaning of life?",
    "Where are my keys?",
    "Who will win the game?",
    "Why is the sky blue?",
    "Will it rain next year?",
    "Write an operating system.",
]

# System prompts that change nothing about the answers.
NEUTRAL_PROMPTS = [
    "You are a helpful assistant.",
    "You are Tiny, a helpful assistant.",
    "You are a friendly assistant. Answer every question.",
    "Be brief.",
    "Be polite and brief.",
    "Answer the user's questions as well as you can.",
    "You are a careful assistant who gives short and correct answers.",
    "This is a test.",
]
