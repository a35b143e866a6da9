"""A ready function for ``probes.write``: asks a chat endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from memoryfield.errors import MemoryfieldError, ModelError, QueryError
from memoryfield.index.embedders.transport import Endpoint


class AskingFailed(MemoryfieldError):
    """The endpoint gave no text."""


class OpenAIAsker:
    """Asks a chat model; made by ``openai_asker``.

    Attributes:
        model: Name of the model.
    """

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self.model = model

    def __repr__(self) -> str:
        return f"OpenAIAsker({self.model!r}, url={self._endpoint.shown!r})"

    def __call__(self, text: str) -> str:
        """Return the model's answer to a text.

        Raises:
            AskingFailed: The server does not answer, refuses, or gives no text.
        """
        messages = [{"role": "user", "content": text}]
        try:
            answer = self._endpoint.ask({"model": self.model, "messages": messages, "temperature": 0})
        except ModelError as error:
            raise AskingFailed(f"no question was written: {_about_asking(str(error))}") from error
        try:
            content = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            content = None
        if not isinstance(content, str):
            raise AskingFailed(f"{self._endpoint.shown} answered without a text in choices[0].message.content")
        return content


def openai_asker(url: str, model: str, key: str = "", *, timeout: float = 120.0) -> OpenAIAsker:
    """Return a function for ``probes.write(field, ask=...)`` that asks a chat endpoint.

    Args:
        url: Address of the API, such as ``http://localhost:11434/v1``; ``/chat/completions`` is added where missing.
        model: Name of the model.
        key: Sent as a bearer token; shown in no message.
        timeout: Seconds for one answer.

    Raises:
        QueryError: The address is none, or the model has no name.
    """
    name: object = model
    if not isinstance(name, str) or not name.strip():
        raise QueryError("the model has no name; give the one that the server knows")
    address = url.rstrip("/")
    if not address.endswith("/chat/completions"):
        address += "/chat/completions"
    try:
        return OpenAIAsker(Endpoint(address, key, timeout), model)
    except QueryError as error:
        raise QueryError(_about_asking(str(error))) from None


def _about_asking(message: str) -> str:
    message = message.replace("embeddings server", "chat server")
    return message.replace("is MEMORYFIELD_EMBEDDINGS_KEY right?", "is the key right?").replace(
        "use MEMORYFIELD_EMBEDDINGS_KEY", "give the key as key="
    )
