"""Round-trip translation: pivot languages, translators, a cache, and parallel text."""
