"""What all panels have in common: how a panel is built, and the one way it talks to the browser.

**One way for all panels.** A panel is an anywidget: a class here, a script and a style sheet of the same name beside
it (``map.py``, ``map.js``, ``map.css``). The script draws plain DOM, so that roles, labels, keys, focus and theme are
ours; ipywidgets offers labels at best. No build step, nothing fetched.

- **Traits go down.** Python sets synced traits, the script reads them (``model.get``, ``model.on("change:...")``) and
  never sets one. So Python's value is the truth, nothing echoes, and nothing is lost when both sides change at once.
- **Messages go up.** The script calls ``tell(model, "select", {...})``; here the method ``heard_select(content)`` is
  called, on whatever thread; binary data are in ``content["buffers"]``. What it raises shows in the status line.
- **Large data go by message, not by trait**: a trait is stored in the saved notebook. ``self.tell("points", {...},
  [buffer])`` reaches every view; a view that appears asks for it with ``tell(model, "hello")``.
- **Page text reaches the DOM as text only** (``element(...)`` of ``panel.js`` uses ``textContent``). Markup is made in
  one place, the preview of the editor, from sanitised HTML.
- **Scripts** import helpers from ``./panel.js`` with one-line imports; ``script()`` joins the files and drops those
  lines, and Node runs the same files unjoined in the tests. Top-level names must differ among joined files. What is
  stored with a widget is packed (``packing.py``).
- ``shell(model, el, name)`` of ``panel.js`` makes the panel's frame: label, theme class, keys that stay inside.
- **A saved notebook** shows ``twin()``: a static picture or table as HTML, everything in it escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

import memoryfield as mf
from memoryfield_widgets.packing import packed
from memoryfield_widgets.state import State

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[a-z_]+\.js";\n', re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*$", re.MULTILINE | re.DOTALL)


def script(*names: str) -> str:
    """Return scripts of this package joined into one module; the last has the default export."""
    return "\n".join(_lean(_IMPORT.sub("", _text(name))) for name in ("panel.js", *names))


def style(*names: str) -> str:
    """Return style sheets of this package joined into one, the common one first."""
    return "\n".join(_lean(_text(name)) for name in ("panel.css", *names))


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _lean(source: str) -> str:
    """Return a source without indentation and whole-line comments: each panel's lies in the saved notebook."""
    lines = (line.strip() for line in _BLOCK_COMMENT.sub("", source).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


class Panel(anywidget.AnyWidget):
    """Base of all panels.

    A subclass sets ``_esm = script("its.js")`` and ``_css = style("its.css")``, adds synced traits, ``heard_...``
    methods, and ``twin``.

    Args:
        field: The field, or the state of one.
        state: The state to share; by default the field's own, which all its panels share.

    Attributes:
        state: What this panel shares with the others.
    """

    _esm = script("empty.js")
    _css = style()
    label = traitlets.Unicode("").tag(sync=True)  # what a screen reader calls the panel
    fault = traitlets.Unicode("").tag(sync=True)  # the state's error: a panel that stands alone has no status line
    _shows_faults = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Pack a panel's script and style: they are stored with each of its widgets."""
        own = cls.__dict__
        if isinstance(own.get("_esm"), str) and isinstance(own.get("_css"), str):
            cls._esm, cls._css = packed(f"mf-{cls.__name__.lower()}", own["_esm"], own["_css"]), ""
        super().__init_subclass__(**options)

    def __init__(self, field: mf.MemoryField | State, *, state: State | None = None, **traits: Any) -> None:
        self.state = State.of(field) if state is None else state
        self._ends: list[Callable[[], None]] = []
        super().__init__(**traits)
        self.on_msg(self._hear)
        if self._shows_faults:
            self.follow(self._show_fault, "error")
            self._show_fault()

    def _show_fault(self, _changed: frozenset[str] = frozenset()) -> None:
        self.fault = self.state.error

    def heard_dismiss(self, _content: Mapping[str, Any]) -> None:
        """Take the error away."""
        self.state.error = ""

    @property
    def field(self) -> mf.MemoryField:
        """The field."""
        return self.state.field

    def follow(self, observer: Callable[[frozenset[str]], None], *names: str) -> None:
        """Follow values of the state until the panel is closed; *observer* is a method of the panel."""
        self._ends.append(self.state.follow(observer, *names))

    def tell(self, kind: str, content: Mapping[str, Any] | None = None, buffers: Sequence[Any] = ()) -> None:
        """Send a message to every view of the panel; there it reaches the handler of that kind."""
        self.send({"kind": kind, **(content or {})}, list(buffers))

    def _hear(self, _widget: Any, content: Any, buffers: Sequence[memoryview]) -> None:
        """Call the method for a message from a view; nobody would see an exception, so it goes to the state."""
        kind = content.get("kind") if isinstance(content, dict) else None
        method = getattr(self, f"heard_{kind}", None) if isinstance(kind, str) else None
        if method is None:
            return  # another version's script, in a notebook that was saved long ago
        try:
            method({**content, "buffers": buffers} if buffers else content)
        except Exception as error:
            self.state.fail(error)

    def close(self) -> None:
        """Take the panel away and stop following the state."""
        for end in self.__dict__.pop("_ends", ()):  # none yet where a subclass refused its arguments
            end()
        super().close()

    def twin(self) -> str:
        """Return what stands in the saved notebook for the panel: static, escaped HTML."""
        return ""

    def not_yet(self, words: str) -> str:
        """Return a sentence for the saved notebook about what was not there when its cell ran."""
        text = html.escape(f"{self.label} of {self.field.name}: {words}").replace("$", "&#36;").replace("`", "&#96;")
        return f'<p class="memoryfield mathjax_ignore">{text}</p>'

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.field.name!r}>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle: Any = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        try:
            twin = self.twin()
        except Exception as error:  # the panel itself works without it
            self.state.fail(error)
            twin = ""
        return ({**data, "text/html": twin} if twin else data), metadata
