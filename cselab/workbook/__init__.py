"""What the notebooks show, on top of the library: runner, widgets, plots, course, analyses."""
