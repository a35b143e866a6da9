"""What was put in front of a model already, so that a later turn adds only what is new.

One JSON file a conversation, in the user's state directory. A page counts as delivered in the version that was
delivered: a page that changed since is new again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable

from memoryfield.display import counted
from memoryfield.errors import NewerSchema
from memoryfield.places import private_directory, state_directory

_SCHEMA = 1


class Ledger:
    """The pages that one conversation has seen.

    Args:
        conversation: What the conversation is called; any text.

    Raises:
        NewerSchema: The file was written by a newer version.
    """

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        digest = hashlib.sha256(conversation.encode("utf-8", errors="replace")).hexdigest()[:24]
        self.path = state_directory() / "ledgers" / f"{digest}.json"
        self._seen = self._load()

    def __contains__(self, page: tuple[str, str, str]) -> bool:
        """Say whether a page (field, name, sha256) was delivered in this version."""
        return page in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        return f"<Ledger of {self.conversation[:40]!r}: {counted(len(self), 'page')} delivered>"

    def add(self, pages: Iterable[tuple[str, str, str]]) -> None:
        """Note pages (field, name, sha256) as delivered, on the disk."""
        self._seen |= set(pages)
        private_directory(self.path.parent)
        spare = self.path.with_suffix(f".{os.getpid()}.tmp")
        text = json.dumps({"schema": _SCHEMA, "conversation": self.conversation, "seen": sorted(self._seen)})
        spare.write_text(text, encoding="utf-8")
        os.replace(spare, self.path)

    def forget(self) -> None:
        """Forget everything, as after a conversation was cut short by its host."""
        self._seen = set()
        self.path.unlink(missing_ok=True)

    def _load(self) -> set[tuple[str, str, str]]:
        try:
            held = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return set()
        except (ValueError, RecursionError, OSError):
            return set()  # a ledger only saves words: a damaged one delivers once more
        if not isinstance(held, dict):
            return set()
        if isinstance(held.get("schema"), int) and held["schema"] > _SCHEMA:
            raise NewerSchema(f"{self.path} was written by a newer version: update, or delete the file")
        seen = held.get("seen")
        rows = [row for row in seen if isinstance(row, list) and len(row) == 3] if isinstance(seen, list) else []
        return {(str(field), str(name), str(sha256)) for field, name, sha256 in rows}
