"""Magics for notebooks: ``%load_ext memoryfield`` brings ``%field``, ``%recall`` and ``%%remember``.

They do what ``open_field``, ``MemoryField.search`` and ``MemoryField.write`` do, in fewer keys. The field is the
variable ``field`` of the notebook where that is one, else the one that ``%field`` opened last. IPython's own
``%recall``, which repeats a line, stays as ``%rep``. IPython is not imported here: it hands over its shell.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import shlex
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from memoryfield.advice import in_a_magic
from memoryfield.display import plain
from memoryfield.errors import MemoryfieldError, PageExists, PageNotFound, QueryError
from memoryfield.field import DEFAULT_RETRIEVER, MemoryField
from memoryfield.format.edit import one_line
from memoryfield.format.names import page_name, slug
from memoryfield.index.recipes import RECIPES
from memoryfield.opening import open_field

if TYPE_CHECKING:
    from memoryfield.format.page import Page
    from memoryfield.retrieve.results import SearchResults

SOURCE = "source"  # frontmatter key that says where a remembered page came from
VARIABLE = "field"  # what the field is called in the notebook

_FIELD_OPTIONS = ("--model", "--recipe", "--create")
_RECALL_OPTIONS = ("-k", "--retriever", "--model", "--recipe", "--since", "--until")
_REMEMBER_OPTIONS = ("--name", "--summary", "--tags", "--append", "--replace")
_FLAGS = frozenset(["--create", "--append", "--replace"])
_ASKED = re.compile(r"^(?P<before>[ \t]*(?:\w+[ \t]*=[ \t]*)?)%recall[ \t]+(?P<rest>\S.*\?)\s*$")

_loaded: weakref.WeakKeyDictionary[Any, Magics] = weakref.WeakKeyDictionary()


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; called by ``%load_ext memoryfield``."""
    if shell not in _loaded:
        _loaded[shell] = Magics(shell)
        _loaded[shell].register()


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away; called by ``%unload_ext memoryfield``."""
    magics = _loaded.pop(shell, None)
    if magics is not None:
        magics.unregister()


def _in_words(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Show what the library refuses as one line, without a traceback."""

    @functools.wraps(magic)
    def call(*arguments: Any) -> Any:
        try:
            with in_a_magic():
                return magic(*arguments)
        except MemoryfieldError as error:
            from IPython.core.error import UsageError

            raise UsageError(plain(error)) from None

    return call


class Magics:
    """The magics of one shell.

    Args:
        shell: An ``InteractiveShell``.

    Attributes:
        current: The field that ``%field`` opened last.
    """

    def __init__(self, shell: Any) -> None:
        self._shell: Callable[[], Any] = weakref.ref(shell)
        self.current: MemoryField | None = None
        self._hidden: dict[str, Any] = {}  # IPython's own magics of these names

    def register(self) -> None:
        """Tell the shell of the magics, of their completion, and of questions that end in a question mark."""
        shell = self._shell()
        lines = shell.magics_manager.magics["line"]
        # asked for by name: IPython loads some of its own only then
        found = {name: shell.find_magic(name) for name in ("field", "recall", "rep")}
        self._hidden = {name: magic for name, magic in found.items() if magic is not None}
        if "recall" in self._hidden:
            lines["rep"] = self._hidden["recall"]
        shell.register_magic_function(self._called(self.field, "field"), "line", "field")
        shell.register_magic_function(self._called(self.recall, "recall"), "line", "recall")
        shell.register_magic_function(self._called(self.remember, "remember"), "cell", "remember")
        shell.input_transformer_manager.token_transformers.append(Asked)
        for key in ("%field", "%recall", "%%remember"):
            shell.set_hook("complete_command", self._complete, str_key=key)

    def unregister(self) -> None:
        """Take back what ``register`` did; the hooks of completion stay, without effect."""
        shell = self._shell()
        magics = shell.magics_manager.magics
        for kind, name in (("line", "field"), ("line", "recall"), ("cell", "remember")):
            magics[kind].pop(name, None)
        magics["line"].update(self._hidden)
        transformers = shell.input_transformer_manager.token_transformers
        if Asked in transformers:
            transformers.remove(Asked)

    @staticmethod
    def _called(method: Callable[..., Any], name: str) -> Callable[..., Any]:
        magic = _in_words(method)
        magic.__name__ = name
        return magic

    # --- the magics ---------------------------------------------------------------------------------------------------

    def field(self, line: str) -> MemoryField:
        """Open a memoryfield for %recall and %%remember, and show it.

        %field [--model MODEL] [--recipe RECIPE] [--create] PATH
            Open a directory or a .memoryfield.zip. The variable `field` is set to it, unless it holds something else.
        %field
            Show the field in use.

        Examples:
            %field data/harbor
            %field --model all-MiniLM-L6-v2 notes.memoryfield.zip
        """
        options, rest = read_options(line, _FIELD_OPTIONS, "%field")
        path = _one_path(rest)
        if not path:
            if options:
                raise QueryError("%field has options but no path; say which field is meant")
            return self.chosen()
        opened = open_field(
            path,
            create=bool(options.get("--create")),
            model=options.get("--model"),
            recipe=options.get("--recipe") or "page",
        )
        self.current = opened
        variables = self._shell().user_ns
        if isinstance(variables.get(VARIABLE), MemoryField | None):
            variables[VARIABLE] = opened
        return opened

    def recall(self, line: str) -> SearchResults:
        """Search the field: %recall [OPTIONS] QUESTION.

        -k NUMBER              most pages (10)
        --retriever NAME       hybrid, vector, keyword or rrf
        --model MODEL          another model than the field's own
        --recipe RECIPE        another recipe: page, content or passages
        --since, --until DATE  only pages updated since, until

        Options stand before the question; everything after them is the question, quotes and question mark included.
        {name} is replaced by the variable of that name. The results can be kept: found = %recall QUESTION

        Examples:
            %recall why did the build stop?
            %recall -k 3 --retriever keyword blue disk
        """
        options, question = read_options(line, _RECALL_OPTIONS, "%recall")
        if not question:
            raise QueryError("%recall needs a question, as in  %recall why did the build stop?")
        return self.chosen().search(
            question,
            k=_number(options.get("-k", "10")),
            retriever=options.get("--retriever", DEFAULT_RETRIEVER),
            model=options.get("--model"),
            recipe=options.get("--recipe"),
            since=options.get("--since"),
            until=options.get("--until"),
        )

    def remember(self, line: str, cell: str = "") -> Page:
        """Make a page of the cell, Markdown: %%remember [OPTIONS] TITLE.

        --name NAME     page name; made from the title when left out
        --summary TEXT  one line that says what the page holds (in quotes)
        --tags A,B      tags
        --append        add the cell to the page that is there
        --replace       put the cell in place of the body of the page that is there

        The page says in its key `source` which notebook it is from. Run the cell again and the same page is brought up
        to date; a page that comes from elsewhere is left alone unless you say --append or --replace.

        Example:
            %%remember --tags winch,spring Oil for the winch
            Two drops on each pawl, in April.
        """
        options, title = read_options(line, _REMEMBER_OPTIONS, "%%remember")
        title = one_line(title)
        if not title:
            raise QueryError("%%remember needs a title, as in  %%remember Oil for the winch")
        if not cell.strip():
            raise QueryError("the cell is empty: there is nothing to remember under the title")
        field = self.chosen()
        name = page_name(options["--name"]) if "--name" in options else slug(title)
        keys: dict[str, Any] = {SOURCE: source_of(self._shell())}
        if "--tags" in options:
            keys["tags"] = [tag.strip() for tag in options["--tags"].split(",") if tag.strip()]
        try:
            there = field.read(name)
        except PageNotFound:
            return field.write(name, title=title, summary=options.get("--summary"), body=cell, **keys)
        if options.get("--append"):
            return field.edit(name, append=cell, if_sha256=there.sha256)
        if not options.get("--replace") and there.frontmatter.get(SOURCE) != keys[SOURCE]:
            raise PageExists(
                f"a page {name!r} is there that is not from this notebook; choose another title, say --name NAME, or "
                "say --append to add to it, or --replace to put this text in its place"
            )
        return field.edit(
            name, title=title, summary=options.get("--summary"), keys=keys, body=cell, if_sha256=there.sha256
        )

    def chosen(self) -> MemoryField:
        """Return the field in use.

        Raises:
            QueryError: None was opened yet.
        """
        variable = self._shell().user_ns.get(VARIABLE)
        found = variable if isinstance(variable, MemoryField) else self.current
        if found is None:
            raise QueryError("no field is open here; say  %field PATH  first")
        return found

    # --- completion ---------------------------------------------------------------------------------------------------

    def _complete(self, _completer: Any, event: Any) -> list[str]:
        """Return what may stand at the cursor after one of the magics."""
        name = event.command.lstrip("%")
        before = event.text_until_cursor.split()
        last = before[-2] if event.symbol and len(before) > 1 else before[-1] if before else ""
        try:
            return complete(name, last, event.symbol)
        except (OSError, MemoryfieldError):
            return []


def complete(magic: str, last: str, typed: str) -> list[str]:
    """Return the completions of *typed* after the word *last*: values of an option, options, or paths."""
    options = {"field": _FIELD_OPTIONS, "recall": _RECALL_OPTIONS, "remember": _REMEMBER_OPTIONS}[magic]
    if last == "--retriever":
        from memoryfield.retrieve.search import RETRIEVERS

        choices: Sequence[str] = RETRIEVERS
    elif last == "--recipe":
        choices = RECIPES
    elif last == "--model":
        from memoryfield.index.embedders.catalogue import models

        choices = [str(model.code) for model in models()]
    elif typed.startswith("-"):
        choices = options
    elif magic == "field":
        return _paths(typed)
    else:
        choices = ()
    return [choice for choice in choices if choice.startswith(typed)]


def _paths(typed: str) -> list[str]:
    """Return directories and archives whose path begins so."""
    found = []
    for path in sorted(glob.glob(glob.escape(os.path.expanduser(typed)) + "*")):
        if os.path.isdir(path):
            found.append(path + "/")
        elif path.endswith(".zip"):
            found.append(path)
    return found


# --- reading a line ---------------------------------------------------------------------------------------------------


class Asked:
    """Keeps ``%recall why did it stop?`` a question: IPython would show the help of ``stop``.

    One of IPython's transformers by tokens, so that a text in quotes is left alone.

    Args:
        line: Number of the line that holds the question, from 0.
    """

    priority = 1  # before IPython's own, which begin at 5

    def __init__(self, line: int) -> None:
        self.start_line = line
        self.start_col = 0

    @classmethod
    def find(cls, tokens_by_line: Sequence[Sequence[Any]]) -> Asked | None:
        """Return the transformer of the first line that holds such a question."""
        for tokens in tokens_by_line:
            for token in tokens[:1]:
                if _ASKED.match(token.line):
                    return cls(token.start[0] - 1)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Return the lines with the question in a call that means the same."""
        found = _ASKED.match(lines[self.start_line])
        if found is None:
            return lines
        call = f"{found['before']}get_ipython().run_line_magic('recall', {found['rest']!r})\n"
        return [*lines[: self.start_line], call, *lines[self.start_line + 1 :]]


def read_options(line: str, known: Sequence[str], magic: str) -> tuple[dict[str, str], str]:
    """Return the options at the beginning of a line, and the rest of it as it stands.

    A value may stand in quotes. ``--`` ends the options, for a text that begins with a hyphen.

    Raises:
        QueryError: An option that is not known, or one without its value.
    """
    options: dict[str, str] = {}
    rest = line.strip()
    while rest.startswith("-"):
        word, rest = _word(rest)
        option, given, value = word.partition("=")
        if word == "--":
            break
        if option not in known:
            raise QueryError(f"{magic} has no option {option!r}; it has {', '.join(known)} (and -- before the text)")
        if option in _FLAGS:
            value = "yes"
        elif not given:
            if not rest:
                raise QueryError(f"{magic}: the option {option} needs a value")
            value, rest = _word(rest)
        options[option] = value
    return options, rest


def _word(text: str) -> tuple[str, str]:
    """Return the first word, which may have parts in quotes, and what follows it."""
    found = re.match(r"""((?:"[^"]*"|'[^']*'|[^\s"'])+)\s*""", text)
    if found is None:
        return text, ""
    word = found[1]
    return re.sub(r""""([^"]*)"|'([^']*)'""", lambda part: part[1] or part[2] or "", word), text[found.end() :]


def _one_path(text: str) -> str:
    """Return a path, whose quotes, if it has any, are taken away."""
    if text[:1] in ("'", '"'):
        try:
            return " ".join(shlex.split(text))
        except ValueError:
            return text
    return text


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise QueryError(f"-k is {text!r}; give a whole number of at least 1") from None


def source_of(shell: Any, environment: Mapping[str, str] | None = None) -> str:
    """Return what stands for the notebook in a page: its file name, never a path through someone's home directory."""
    variables = environment if environment is not None else os.environ
    # VS Code sets the first, Jupyter Server the second; a kernel without a notebook has neither
    named = shell.user_ns.get("__vsc_ipynb_file__") or variables.get("JPY_SESSION_NAME") or ""
    path = PurePath(str(named))
    if path.suffix.lower() != ".ipynb":
        return "IPython session"
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.name
