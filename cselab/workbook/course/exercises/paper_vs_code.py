"""Check of notebook paper_vs_code."""

from cselab.workbook.course.checks import exercise, same_number


@exercise("paper.1")
def printed_over_released_dcl(answer: float) -> str:
    """d log d against log d, at d = 768 features that are all alike."""
    same_number(
        answer,
        768,
        within=0.5,
        mistakes={
            "N divides the scores, and equal scores stay equal: it changes nothing here.": 768 * 64,
            "Each feature's loss is the same in both forms; then one takes a sum of them.": 1,
        },
    )
    return "With λ = 0.1 beside InfoNCE the printed form would be all of the loss."
