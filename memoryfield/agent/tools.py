"""The tools of an agent: search, pull, read, write, list, delete, refresh, over one field or several.

Each is a plain function with a typed signature; ``schemas`` makes JSON schemas of them. Whatever happens they return a
value that JSON can hold: errors are sentences that say what to do next. Everything written is a step of the history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memoryfield.agent.answers import AS_DATA, LONGEST_TITLE, Answer, answering, error_answer, shown_page
from memoryfield.agent.arguments import at_most, ended, wrong_arguments
from memoryfield.agent.merging import Merged, merged_search
from memoryfield.agent.schemas import tool_schemas
from memoryfield.errors import MemoryfieldError, PageExists, PageNotFound, QueryError
from memoryfield.field import MemoryField
from memoryfield.format.edit import new_page
from memoryfield.format.names import slug
from memoryfield.format.page import Page
from memoryfield.opening import open_field

if TYPE_CHECKING:
    import os

    from memoryfield.index.embedders import Embedder

MOST_HITS = 50
MOST_PAGES = 20
PULL_BYTES = 6000
READ_BYTES = 40_000
_SNIPPET = 300


class MemoryTools:
    """The tools over some fields.

    Args:
        fields: One field (or its path), or several by the names that the agent is told, such as ``personal`` and
            ``project``. New pages go to the first one where nothing else is said.
        model: Embedding model for all of them; by default each field's own.
        who: Who is named in the history, such as the agent's name.
        read_only: Leave out the tools that change pages.

    Raises:
        FieldNotFound: A path is no field.
        QueryError: No fields.
    """

    def __init__(
        self,
        fields: MemoryField | str | os.PathLike[str] | Mapping[str, MemoryField | str | os.PathLike[str]],
        *,
        model: str | Embedder | None = None,
        who: str = "agent",
        read_only: bool = False,
    ) -> None:
        named = fields if isinstance(fields, Mapping) else {"": fields}
        opened = {label: _opened(given, model, who) for label, given in named.items()}
        self.fields: dict[str, MemoryField] = {label or field.name: field for label, field in opened.items()}
        if not self.fields:
            raise QueryError("no field was given")
        self.model = model
        self.who = who
        self.read_only = read_only
        self._lock = threading.Lock()  # one change at a time: what is checked first is still so when it is written

    def functions(self) -> tuple[Callable[..., Answer], ...]:
        """Return the tools as functions, to be handed to whatever calls them."""
        reading = (self.memory_search, self.memory_pull, self.memory_read, self.memory_list)
        writing = (self.memory_write, self.memory_delete)
        return (*reading, self.memory_refresh) if self.read_only else (*reading, *writing, self.memory_refresh)

    def schemas(self, form: str = "mcp") -> list[dict[str, Any]]:
        """Return JSON schemas of the tools for ``openai``, ``anthropic`` or ``mcp``."""
        return tool_schemas(self.functions(), form)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a tool by name with arguments that came from a model; a wrong call is answered, never raised."""
        found = {function.__name__: function for function in self.functions()}.get(str(name))
        if found is None:
            known = ", ".join(function.__name__ for function in self.functions())
            return {"error": f"there is no tool {name!r}", "next": f"Call one of: {known}."}
        schema = tool_schemas([found])[0]["inputSchema"]
        problem = wrong_arguments(schema, arguments)
        if problem is not None:
            return {"error": problem, "next": "Change the arguments and call again."}
        return found(**arguments)

    # --- reading ----------------------------------------------------------------------------------------------------

    @answering
    def memory_search(self, query: str, k: int = 5, field: str | None = None) -> Answer:
        """Search the memory and return the best pages with a snippet of each. Use it to see what is known.

        Args:
            query: What you want to know, in your own words.
            k: How many pages, at most 50.
            field: Search only this field.
        """
        merged, beside = self._search(query, at_most(k, MOST_HITS, "k"), field)
        hits = [
            {
                "field": hit.field,
                "name": hit.name,
                "title": hit.title[:LONGEST_TITLE],
                "summary": hit.summary[:_SNIPPET],
                "score": round(hit.score, 4),
                "snippet": hit.snippet.text[:_SNIPPET],
            }
            for hit in merged.hits
        ]
        return {"hits": hits, **beside}

    @answering
    def memory_pull(self, query: str, k: int = 3, max_bytes: int = PULL_BYTES, field: str | None = None) -> Answer:
        """Search the memory and read the best pages in one call. Use it before you start a task.

        Args:
            query: What you want to know, in your own words.
            k: How many pages, at most 20.
            max_bytes: Most bytes of page text; a first page that is longer is cut.
            field: Search only this field.
        """
        room = at_most(max_bytes, READ_BYTES, "max_bytes")
        merged, beside = self._search(query, at_most(k, MOST_PAGES, "k"), field)
        pages: list[Answer] = []
        left_out: list[Answer] = []
        for hit in merged.hits:
            try:
                page = self.fields[hit.field].read(hit.name)
            except PageNotFound:
                continue  # deleted since it was found
            if len(page.raw) <= room:
                pages.append(shown_page(page, hit.field))
                room -= len(page.raw)
            elif not pages:
                pages.append(shown_page(page, hit.field, cut=room))
                room = 0
            else:
                left_out.append({"field": hit.field, "name": hit.name})
        return {"pages": pages, **({"found_too": left_out} if left_out else {}), **beside}

    @answering
    def memory_read(self, names: list[str], field: str | None = None) -> Answer:
        """Read pages by name, several at once.

        Args:
            names: Names of pages, at most 20.
            field: The field they are in; by default the first one that has each.
        """
        if not names:
            raise QueryError("no names were given")
        room = READ_BYTES
        pages: list[Answer] = []
        missing: list[Answer] = []
        for name in names[:MOST_PAGES]:
            try:
                label = self._label_of(name, field)
                page = self.fields[label].read(name)
            except MemoryfieldError as error:
                missing.append({"name": name[:LONGEST_TITLE], **error_answer(error)})
                continue
            pages.append(shown_page(page, label, cut=max(room, 200) if len(page.raw) > room else None))
            room -= len(page.raw)
        answer: Answer = {"pages": pages, "note": AS_DATA}
        if missing:
            answer["missing"] = missing
        if len(names) > MOST_PAGES:
            answer["left_out"] = [name[:LONGEST_TITLE] for name in names[MOST_PAGES:][: READ_BYTES // LONGEST_TITLE]]
        return answer

    @answering
    def memory_list(self, field: str | None = None, since: str | None = None, limit: int = 50) -> Answer:
        """List pages: name, title, summary, when changed; the newest first.

        Args:
            field: List only this field.
            since: Only pages changed on or after this date, such as 2026-03-01.
            limit: How many, at most 500.
        """
        most = at_most(limit, 500, "limit")
        rows: list[Answer] = []
        failed: list[Answer] = []
        total: dict[str, int] = {}
        for label, chosen in self._chosen(field).items():
            try:
                names = set(chosen.select(since=since))
                for page in chosen.pages():
                    if page.name in names:
                        changed = page.updated or page.created or (page.modified.isoformat() if page.modified else "")
                        rows.append(
                            {"field": label, "name": page.name, "title": page.title[:LONGEST_TITLE]}
                            | {"summary": page.summary[:200], "changed": changed[:40]}
                        )
                total[label] = len(chosen)
            except QueryError:
                raise
            except MemoryfieldError as error:
                failed.append({"field": label, **error_answer(error)})
        rows.sort(key=lambda row: (str(row["changed"]), str(row["name"])), reverse=True)
        answer: Answer = {"pages": rows[:most], "total": total, "note": AS_DATA}
        return answer | ({"failed": failed} if failed else {})

    # --- writing ----------------------------------------------------------------------------------------------------

    @answering
    def memory_write(
        self,
        title: str,
        body: str,
        summary: str = "",
        name: str | None = None,
        tags: list[str] | None = None,
        field: str | None = None,
        if_sha256: str | None = None,
    ) -> Answer:
        """Write a page: a new one, or the whole new text of one that is there. Search first; one topic a page.

        Args:
            title: What one would search for.
            body: Markdown: the facts, with dates and where each is from.
            summary: One line that answers on its own.
            name: Name of the page to replace, or of the new one; by default made from the title.
            tags: Words to filter by.
            field: The field to write to; by default the one that has the page, else the first.
            if_sha256: Replace only this version of the page (sha256 as memory_read gave it).
        """
        if not title.strip() or not body.strip():
            raise QueryError("a page needs a title and a body")
        keys: dict[str, Any] = {"tags": list(tags)} if tags is not None else {}
        with self._lock:
            label = self._to_write(name, field)
            chosen = self.fields[label]
            there = name is not None and name in chosen
            similar = self._similar(chosen, title, summary, body, keys, name if there else None)
            if name is None and slug(title) in chosen:
                similar = list(dict.fromkeys([slug(title), *similar]))  # of the same title, whatever it says
            if there:
                assert name is not None
                page = chosen.edit(
                    name, title=title, summary=summary or None, body=ended(body), keys=keys, if_sha256=if_sha256
                )
            else:
                if if_sha256 is not None:
                    raise PageNotFound(f"there is no page {name!r} to replace in {label}")
                page = self._created(chosen, name, title, summary, ended(body), keys)
        answer: Answer = {"field": label, "name": page.name, "sha256": page.sha256}
        answer["done"] = "replaced" if there else "created"
        if page.cut_bytes:
            answer["too_long"] = f"{page.cut_bytes} bytes are past what search reads; split the page by topic"
        if similar:
            answer["similar"] = similar
            answer["next"] = "Another page may say this already: read it, put both into one page, delete the other."
        return answer

    @answering
    def memory_delete(self, name: str, field: str | None = None, if_sha256: str | None = None) -> Answer:
        """Delete a page that is wrong or that another page holds. The deletion can be undone by a person.

        Args:
            name: Name of the page.
            field: The field it is in.
            if_sha256: Delete only this version of the page.
        """
        with self._lock:
            label = self._label_of(name, field)
            page = self.fields[label].delete(name, if_sha256=if_sha256)
        return {"field": label, "name": page.name, "done": "deleted"}

    @answering
    def memory_refresh(self, field: str | None = None, stale_days: int = 365) -> Answer:
        """Bring the search index up to date and say what needs care: near duplicates and stale pages.

        Args:
            field: Only this field.
            stale_days: Pages unchanged for longer are listed.
        """
        fields: list[Answer] = []
        for label, chosen in self._chosen(field).items():
            report: Answer = {"field": label, "pages": len(chosen)}
            try:
                synced = chosen.sync(progress=False)
                report |= {"added": len(synced.added), "updated": len(synced.updated), "removed": len(synced.removed)}
                near = chosen.near_duplicates(0.9, progress=False)
                report["near_duplicates"] = [[p.first, p.second, round(p.cosine, 3)] for p in near.pairs[:20]]
            except MemoryfieldError as error:
                report |= error_answer(error)
            report["stale"] = [item.name for item in chosen.stale(stale_days).items[:20]]
            fields.append(report)
        return {"fields": fields}

    # --- inside -----------------------------------------------------------------------------------------------------

    def _search(self, query: str, k: int, field: str | None) -> tuple[Merged, Answer]:
        """Search all chosen fields; return the hits, and what an answer says beside them."""
        merged = merged_search(self._chosen(field), query, k, model=self.model)
        beside: Answer = {"note": AS_DATA}
        if not merged.hits and merged.reasons:
            one = len(set(merged.reasons.values())) == 1
            told = [why if one else f"{label}: {why}" for label, why in merged.reasons.items()]
            beside["nothing"] = "; ".join(dict.fromkeys(told))
        trouble: list[Answer] = [
            {"field": label, "searched": "by words only", **error_answer(error)}
            for label, error in merged.by_words.items()
        ]
        trouble += [{"field": label, **error_answer(error)} for label, error in merged.failed.items()]
        return merged, beside | ({"failed": trouble} if trouble else {})

    def _chosen(self, field: str | None) -> dict[str, MemoryField]:
        if field is None:
            return self.fields
        if field not in self.fields:
            raise QueryError(f"there is no field {field!r}; there are: {', '.join(self.fields)}")
        return {field: self.fields[field]}

    def _label_of(self, name: str, field: str | None) -> str:
        """Return which field has a page.

        Raises:
            PageNotFound: None has it.
        """
        chosen = self._chosen(field)
        for label, one in chosen.items():
            try:
                if name in one:
                    return label
            except MemoryfieldError:
                continue
        raise PageNotFound(f"there is no page {name!r} in {', '.join(chosen)}")

    def _to_write(self, name: str | None, field: str | None) -> str:
        if field is not None or name is None:
            return next(iter(self._chosen(field)))
        try:
            return self._label_of(name, None)
        except PageNotFound:
            return next(iter(self.fields))

    def _similar(
        self, chosen: MemoryField, title: str, summary: str, body: str, keys: Mapping[str, Any], own: str | None
    ) -> list[str]:
        """Return the names of pages that say the same as what is about to be written, in words."""
        draft = Page(own or "draft", new_page(title=title, summary=summary or None, body=ended(body), **keys))
        try:
            found = chosen.similar(draft, model=self.model)
        except MemoryfieldError:
            return []  # writing never waits for a model
        return [item.name for item in found if item.name != own][:5]

    @staticmethod
    def _created(
        chosen: MemoryField, name: str | None, title: str, summary: str, body: str, keys: Mapping[str, Any]
    ) -> Page:
        try:
            return chosen.write(name, title=title, summary=summary or None, body=body, on_similar="ignore", **keys)
        except PageExists as error:
            raise PageExists(f"{error}; give its name to replace it") from error


def _opened(given: MemoryField | str | os.PathLike[str], model: str | Embedder | None, who: str) -> MemoryField:
    """Return a field of our own, whose history names who writes."""
    if isinstance(given, MemoryField):
        return given.opened_again(who=who, model=model)
    return open_field(given, model=model, who=who)
