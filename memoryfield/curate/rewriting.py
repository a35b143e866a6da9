"""A rewriter for merged texts that asks an OpenAI-compatible endpoint; what it loses, the account of the plan shows."""

from __future__ import annotations

from collections.abc import Callable

from memoryfield.errors import ModelError, QueryError, RewritingFailed
from memoryfield.index.embedders.transport import Endpoint

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
        QueryError: The address is none.
    """
    address = url.rstrip("/")
    if not address.endswith("/chat/completions"):
        address += "/chat/completions"
    try:
        endpoint = Endpoint(address, key, timeout)
    except QueryError as error:
        raise QueryError(_about_rewriting(str(error))) from None

    def rewrite(text: str) -> str:
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
        try:
            answer = endpoint.ask({"model": model, "messages": messages, "temperature": 0})
        except ModelError as error:
            raise RewritingFailed(f"the text was not rewritten: {_about_rewriting(str(error))}") from error
        try:
            content = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            content = None
        if not isinstance(content, str) or not content.strip():
            raise RewritingFailed(f"{endpoint.shown} answered without a text in choices[0].message.content")
        return _unfenced(content)

    return rewrite


def _unfenced(text: str) -> str:
    """Return the text without the code fence that some models put around a whole page."""
    rows = text.strip().split("\n")
    if len(rows) > 2 and rows[0].strip() in ("```", "```markdown", "```md") and rows[-1].strip() == "```":
        return "\n".join(rows[1:-1]) + "\n"
    return text.strip("\n") + "\n"


def _about_rewriting(message: str) -> str:
    message = message.replace("embeddings server", "rewriting server")
    return message.replace("is MEMORYFIELD_EMBEDDINGS_KEY right?", "is the key right?").replace(
        "use MEMORYFIELD_EMBEDDINGS_KEY", "give the key as key="
    )
