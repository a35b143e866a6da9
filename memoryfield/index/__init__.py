"""The caches: vectors of pages per model, and a keyword index. Everything here can be deleted and made again."""
