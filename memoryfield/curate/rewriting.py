"""A rewriter for merged texts that asks an OpenAI-compatible endpoint; what it loses, the account of the plan shows."""

from __future__ import annotations

from collections.abc import Callable

from memoryfield.errors import RewritingFailed
from memoryfield.index.chat import ChatEndpoint, ChatFailed

PROMPT = (
    "You get a Markdown page that was merged from several pages on one subject. Improve its order and wording. Keep "
    "every fact, number, name, date, command, link and table, keep both sides of everything marked [Conflict: ...] "
    "with the mark, keep the section Sources as it is, and add nothing. Answer with the page only."
)


def openai_rewriter(
    url: str, model: str, key: str = "", *, prompt: str = PROMPT, timeout: float = 120.0
) -> Callable[[str], str]:
    """Return a function for ``plan_merge(rewrite=...)`` that asks a chat endpoint.

    Args:
        url: Address of the API, such as ``http://localhost:11434/v1``; ``/chat/completions`` is added where missing.
        model: Name of the model.
        key: Sent as a bearer token; shown in no message.
        prompt: What the model is told.
        timeout: Seconds for one answer.

    Raises:
        QueryError: The address is none, or the model has no name.
    """
    endpoint = ChatEndpoint(url, model, key, timeout=timeout)

    def rewrite(text: str) -> str:
        try:
            return _unfenced(endpoint.ask(text, told=prompt))
        except ChatFailed as error:
            raise RewritingFailed(f"the text was not rewritten: {error}") from error

    return rewrite


def _unfenced(text: str) -> str:
    """Return the text without the code fence that some models put around a whole page."""
    rows = text.strip().split("\n")
    if len(rows) > 2 and rows[0].strip() in ("```", "```markdown", "```md") and rows[-1].strip() == "```":
        return "\n".join(rows[1:-1]) + "\n"
    return text.strip("\n") + "\n"
