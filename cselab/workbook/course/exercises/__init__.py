"""The checks of the exercises; `measured` has those that read a notebook's results."""

from cselab.workbook.course.checks import EXERCISES
from cselab.workbook.course.exercises.encoders import ENCODERS
from cselab.workbook.course.exercises.losses import LOSSES
from cselab.workbook.course.exercises.measured import MEASURED
from cselab.workbook.course.exercises.numbers import NUMBERS
from cselab.workbook.course.exercises.tasks import TASKS

EXERCISES.update({**NUMBERS, **ENCODERS, **LOSSES, **TASKS, **MEASURED})
