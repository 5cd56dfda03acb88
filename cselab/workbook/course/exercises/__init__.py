"""The checks of the exercises; `measured` has those that read a notebook's results."""

from importlib.resources import files

import yaml

from cselab.workbook.course.checks import EXERCISES, Number
from cselab.workbook.course.exercises.encoders import ENCODERS
from cselab.workbook.course.exercises.losses import LOSSES
from cselab.workbook.course.exercises.measured import MEASURED
from cselab.workbook.course.exercises.tasks import TASKS

NUMBERS = yaml.safe_load(files(__package__).joinpath("numbers.yaml").read_text(encoding="utf-8"))
EXERCISES.update({name: Number(**fields) for name, fields in NUMBERS.items()})
EXERCISES.update({**ENCODERS, **LOSSES, **TASKS, **MEASURED})
