"""The study: what the papers print, claims, recorded tables, paper vs. code, pretraining."""
