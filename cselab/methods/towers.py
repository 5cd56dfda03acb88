"""Stage 1 of the twins: the two towers that TNCSE, JTCSE and their ensembles start from."""

from cselab.data.translation.config import RoundTrips
from cselab.methods import Schedule
from cselab.methods.simcse import SimCSE


def tower(pivot: str, learning_rate: float) -> SimCSE.Config:
    """SimCSE on the text and its round trips through `pivot`."""
    schedule = Schedule(
        steps=31_000,  # one epoch of a million sentences and their round trips
        batch_size=64,  # TNCSE's table
        learning_rate=learning_rate,
        max_length=32,  # SimCSE's
        eval_every=100,  # TNCSE supplement: STS-B dev every 100 steps
        max_grad_norm=1.0,
    )
    return SimCSE.Config(schedule=schedule, round_trips=RoundTrips(pivot=pivot))


def twin_towers() -> tuple[SimCSE.Config, SimCSE.Config]:
    """TNCSE's table of hyperparameters: BERT I en-fr-en, 1.5e-5; BERT II en-ru-en, 2e-5."""
    return tower("fr", 1.5e-5), tower("ru", 2e-5)
