"""The checks of the exercises, a module a notebook."""

from cselab.course.exercises import twin_pretraining  # noqa: F401
