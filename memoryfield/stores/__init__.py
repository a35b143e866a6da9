"""Fields that live elsewhere: five calls to a store, and the pages behind them with a copy in the cache directory."""
