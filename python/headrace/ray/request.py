"""What a caller asks for, checked: the JSON of the HTTP entry and the dictionary of a Python handle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

ROLES = ("system", "user", "assistant", "tool")
PRIORITIES = ("low", "normal", "high", "urgent")
KEYS = ("messages", "prompt", "session", "priority", "stream", "parameters")
VECTOR_KEYS = ("input", "priority", "parameters")
LONGEST_SESSION = 256  # characters
#: Parameters that are the request's own keys, or would tie it to one replica's memory.
RESERVED = {
    "previous_messages": "messages",
    "priority": "priority",
    "session_id": "session",
    "session.id": "session",
    "history": "messages",
}
#: Characters of a conversation's beginning that decide on its replica where there is no session.
PREFIX = 256


class RequestError(ValueError):
    """A request that cannot be served as it is; the message says what would be right."""


@dataclass(frozen=True)
class Request:
    prompt: str
    previous: tuple[tuple[str, str], ...] = ()  # role and content
    is_chat: bool = False
    session: str | None = None
    priority: str = "normal"
    stream: bool = True
    parameters: dict[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> Request:
        """Errors: RequestError."""
        _check_keys(value, KEYS, "'messages' or 'prompt'")
        if ("messages" in value) == ("prompt" in value):
            raise RequestError("a request has either 'messages' or 'prompt'")
        previous, prompt = _conversation(value["messages"]) if "messages" in value else ((), value["prompt"])
        if not isinstance(prompt, str) or not prompt:
            raise RequestError(f"'prompt' is {_kind(prompt)}; it must be a text that is not empty")
        request = cls(
            prompt=_text(prompt, "prompt"),
            previous=previous,
            is_chat="messages" in value,
            session=_session(value.get("session")),
            priority=_choice(value.get("priority", "normal"), "priority", PRIORITIES),
            stream=_choice(value.get("stream", True), "stream", (True, False)),
            parameters=_parameters(value.get("parameters", {})),
        )
        return request

    def model_parameters(self) -> dict[str, object]:
        return _model_parameters(self.parameters, self.priority)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The whole conversation; none of a prompt that is no message."""
        said = (*self.previous, ("user", self.prompt)) if self.is_chat else ()
        return [{"role": role, "content": content} for role, content in said]

    def affinity(self) -> str:
        """Requests of the same affinity go to the same replica, whose memory then has their beginning."""
        if self.session is not None:
            return f"session {self.session}"
        beginning = "\n".join(
            f"{role}: {content}" for role, content in (*self.previous, ("user", self.prompt))
        )
        return f"prefix {beginning[:PREFIX]}"


@dataclass(frozen=True)
class VectorRequest:
    """Texts whose vectors are wanted."""

    texts: tuple[str, ...]
    priority: str = "normal"
    parameters: dict[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> VectorRequest:
        """Errors: RequestError."""
        _check_keys(value, VECTOR_KEYS, "'input'")
        given = value.get("input")
        texts = given if isinstance(given, list | tuple) else [given]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise RequestError(f"'input' is {_shown(given)}; it must be a text or a list of texts")
        return cls(
            texts=tuple(_text(text, f"input[{i}]") for i, text in enumerate(texts)),
            priority=_choice(value.get("priority", "normal"), "priority", PRIORITIES),
            parameters=_parameters(value.get("parameters", {})),
        )

    def model_parameters(self) -> dict[str, object]:
        return _model_parameters(self.parameters, self.priority)

    def affinity(self) -> str:
        return f"prefix {self.texts[0][:PREFIX]}"


def _check_keys(value: object, known: tuple[str, ...], needed: str) -> None:
    if not isinstance(value, dict):
        raise RequestError(f"the request is {_kind(value)}; it must be an object with {needed}")
    for key in value:
        if key not in known:
            raise RequestError(
                f"'{key}' is not known; a request has {', '.join(known)}, and what docs/parameters.md "
                "lists goes into 'parameters'"
            )


def _model_parameters(parameters: dict[str, object], priority: str) -> dict[str, object]:
    """What the model does not know is an error, so that no misspelt name is overlooked."""
    return {"strict": True, **parameters, "priority": priority}


def _conversation(value: object) -> tuple[tuple[tuple[str, str], ...], str]:
    if not isinstance(value, list) or not value:
        raise RequestError(f"'messages' is {_kind(value)}; it must be a list of messages that is not empty")
    messages = []
    for i, message in enumerate(value):
        where = f"messages[{i}]"
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            raise RequestError(f"'{where}' must be an object with 'role' and 'content', and nothing else")
        if not isinstance(message["content"], str):
            raise RequestError(f"'{where}.content' is {_kind(message['content'])}; it must be a text")
        role = _choice(message["role"], f"{where}.role", ROLES)
        messages.append((role, _text(message["content"], f"{where}.content")))
    role, prompt = messages.pop()
    if role != "user" or not prompt:
        raise RequestError("the last of 'messages' must be the user's, with a content that is not empty")
    return tuple(messages), prompt


def _session(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SESSION:
        raise RequestError(f"'session' must be a text of 1 to {LONGEST_SESSION} characters")
    return _text(value, "session")


def _parameters(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise RequestError(f"'parameters' is {_kind(value)}; it must be an object")
    _refuse_reserved(value, "parameters")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RequestError(f"'parameters' cannot be written as JSON: {error}") from None
    return value


def _refuse_reserved(section: dict, path: str) -> None:
    """Names may be nested ({"session": {"id": ...}}), dotted, and written with hyphens."""
    for key, value in section.items():
        place = f"{path}.{key}"
        name = place.removeprefix("parameters.").replace("-", "_").lower()
        for reserved, instead in RESERVED.items():
            if name == reserved or name.endswith(f".{reserved}"):
                raise RequestError(f"'{place}' is not taken here; use '{instead}' of the request")
        if isinstance(value, dict):
            _refuse_reserved(value, place)


def _choice(value: object, key: str, choices: tuple) -> object:
    if type(value) is not type(choices[0]) or value not in choices:
        shown = ", ".join(json.dumps(choice) for choice in choices)
        raise RequestError(f"'{key}' is {_shown(value)}; it must be one of {shown}")
    return value


def _text(value: str, key: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"'{key}' holds half of a surrogate pair at character {error.start}") from None
    return value


def _kind(value: object) -> str:
    if value is None:
        return "missing or null"
    if isinstance(value, str | list | dict) and not value:
        return "empty"
    names = {
        bool: "a truth value",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), f"a {type(value).__name__}")


def _shown(value: object) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."
