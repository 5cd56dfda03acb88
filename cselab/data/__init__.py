"""Data: where it comes from, STS tasks, corpora, round trips, batches, and the generated world."""
