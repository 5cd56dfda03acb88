"""Checks of notebook 12."""

from cselab.workbook.course.checks import exercise, same_number


@exercise("12.1")
def cost_of_bert_base(answer: float) -> str:
    """Linear layers of 12 x 768 (3072) against 6 x 192 (384)."""
    small = 6 * (4 * 192**2 + 2 * 192 * 384)
    right = 12 * (4 * 768**2 + 2 * 768 * 3072) / small
    same_number(
        answer,
        right,
        within=0.1,
        mistakes={
            "BERT-base has twice as many layers, too.": right / 2,
            "The inner width is four times d in BERT-base, twice d here.": 32.0,
        },
    )
    return "Its time grows less: large products come nearer to the peak of a machine."
