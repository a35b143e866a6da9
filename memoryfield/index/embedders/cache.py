"""The last few loaded models of this process. Safe for threads: one loads, others that want the same wait for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from memoryfield.index.embedders import Embedder

_KEPT = 4


class ModelCache:
    """Models by what they were asked for with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: OrderedDict[Any, Embedder] = OrderedDict()
        self._loading: dict[Any, threading.Lock] = {}

    def get(self, key: Any, load: Callable[[], Embedder]) -> Embedder:
        """Return the model of *key*, loading it where it is not kept; a failure is raised and not kept."""
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
                return self._models[key]
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            with self._lock:
                if key in self._models:
                    return self._models[key]
            try:
                model = load()
            finally:
                with self._lock:
                    self._loading.pop(key, None)
            with self._lock:
                self._models[key] = model
                while len(self._models) > _KEPT:
                    self._models.popitem(last=False)
            return model

    def __contains__(self, key: Any) -> bool:
        with self._lock:
            return key in self._models

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._models.clear()
