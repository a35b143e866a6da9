"""A progress bar that appears only when there is work, or the caller's own function in its place."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any


class ProgressBar:
    """A tqdm bar that appears with the first page to do and goes at the end; or the caller's own function.

    Args:
        wanted: Whether to show a bar; or a function of pages done and pages to do.
        label: What is being done.
    """

    def __init__(self, wanted: bool | Callable[[int, int], None], label: str = "embedding") -> None:
        self._wanted = wanted
        self._label = label
        self._bar: Any = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        if callable(self._wanted):
            return self._wanted
        return self._update if self._wanted else None

    def _update(self, done: int, total: int) -> None:
        if self._bar is None:
            if total == 0:
                return
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=" pages", desc=self._label, leave=False)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
