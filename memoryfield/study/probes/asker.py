"""A ready function for ``probes.write``: asks a chat endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from memoryfield.errors import MemoryfieldError
from memoryfield.index.chat import ChatEndpoint, ChatFailed


class AskingFailed(MemoryfieldError):
    """The endpoint gave no text."""


class OpenAIAsker(ChatEndpoint):
    """Asks a chat model; made by ``openai_asker``."""

    def __call__(self, text: str) -> str:
        """Return the model's answer to a text.

        Raises:
            AskingFailed: The server does not answer, refuses, or gives no text.
        """
        try:
            return self.ask(text)
        except ChatFailed as error:
            raise AskingFailed(f"no question was written: {error}") from error


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
    return OpenAIAsker(url, model, key, timeout=timeout)
