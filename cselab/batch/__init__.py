"""Running notebooks headless: strict parameters, one kernel process each, pages that open offline. Knows nothing of torch."""
