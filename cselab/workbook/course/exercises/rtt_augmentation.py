"""Checks of notebook 01."""

from collections.abc import Callable

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("01.1")
def share_changed_by_both(answer: Callable[[list[str], list[str], list[str]], float]) -> str:
    """The share of sentences that differ from both of their trips."""
    originals = ["a", "b", "c", "d"]
    trips = (["a", "x", "y", "z"], ["a", "b", "v", "w"])

    def shares(*lists: list[str]) -> tuple[float, float, float]:
        rows = list(zip(*lists, strict=True))
        changed = [(a != b, a != c) for a, b, c in rows]
        return tuple(sum(map(rule, changed)) / len(rows) for rule in (all, any, lambda c: c[0]))

    same_values(
        answer,
        lambda *lists: shares(*lists)[0],
        [(originals, *trips), (originals, originals, trips[1])],
        {
            "This counts sentences that *either* pivot changed.": lambda *x: shares(*x)[1],
            "This counts those that the first pivot changed.": lambda *x: shares(*x)[2],
        },
    )
    return (
        "Where the pivots differ, two towers see different text, and may make different mistakes."
    )


@exercise("01.2")
def jaccard(answer: float) -> str:
    """Two of six words."""
    same_number(
        answer,
        2 / 6,
        within=0.005,
        mistakes={
            "Divide by the words of both texts together, six different ones.": 2 / 4,
            "Each word counts once in the union.": 2 / 8,
        },
    )
    return "Two texts of the same meaning may share a third of their words."
