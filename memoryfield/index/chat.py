"""A chat endpoint that speaks OpenAI's protocol: a language model puts questions, or rewords a merge."""

from __future__ import annotations

from memoryfield.errors import ModelError, QueryError
from memoryfield.index.embedders.transport import Endpoint


class ChatFailed(ModelError):
    """The endpoint gave no text."""


class ChatEndpoint:
    """One model behind one address.

    Attributes:
        model: Name of the model.

    Args:
        url: Address of the API, such as ``http://localhost:11434/v1``; ``/chat/completions`` is added where missing.
        model: Name of the model, as the server knows it.
        key: Sent as a bearer token; shown in no message.
        timeout: Seconds for one answer.

    Raises:
        QueryError: The address is none, or the model has no name.
    """

    def __init__(self, url: str, model: str, key: str = "", *, timeout: float = 120.0) -> None:
        name: object = model
        if not isinstance(name, str) or not name.strip():
            raise QueryError("the model has no name; give the one that the server knows")
        address = url.rstrip("/")
        if not address.endswith("/chat/completions"):
            address += "/chat/completions"
        self._endpoint = Endpoint(address, key, timeout, "chat server", "the argument key")
        self.model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, url={self.shown!r})"

    @property
    def shown(self) -> str:
        """The address for messages."""
        return self._endpoint.shown

    def ask(self, text: str, *, told: str = "") -> str:
        """Return the model's answer to *text*, at temperature 0; *told* goes first, as the system's message.

        Raises:
            ChatFailed: The server does not answer, refuses, or gives no text.
        """
        messages = [{"role": "system", "content": told}] if told else []
        messages.append({"role": "user", "content": text})
        try:
            answer = self._endpoint.ask({"model": self.model, "messages": messages, "temperature": 0})
        except ModelError as error:
            raise ChatFailed(str(error)) from error
        try:
            content = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            content = None
        if not isinstance(content, str) or not content.strip():
            raise ChatFailed(f"{self.shown} answered without a text in choices[0].message.content")
        return content
