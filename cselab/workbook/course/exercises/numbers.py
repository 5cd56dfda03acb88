"""Exercises whose answer is a number."""

import math

from cselab.evaluation.significance import compare_seeds
from cselab.workbook.course.checks import Number

# 04.2: five differences between two methods, and the t interval of their mean
DIFFERENCES = (0.9, -0.2, 0.6, 0.1, 0.4)
OVER_SEEDS = compare_seeds(list(DIFFERENCES), [0.0] * len(DIFFERENCES))
HALF = OVER_SEEDS.mean - OVER_SEEDS.low
# 09.3: the released DCL of perfect features, below log d
LOWEST = 0.2 - math.log((math.exp(0.2) + 767) / 768)
# 11.2: a softmax at τ = 0.1 of these cosines
COSINES = (0.8, 0.7, 0.2, 0.0)
WEIGHTS = [math.exp(cosine / 0.1) for cosine in COSINES]
# 11.3: with x = exp(-0.3 / τ) the nearest gets 1 / (1 + x + x² + x³), so x + x² + x³ = 1
HALF_PUSH = 0.3 / math.log(1.8392867552141612)

NUMBERS = {
    "00.2": Number(  # ranks 4 3 2 1 and 3 4 2 1
        100 * (1 - 6 * 2 / (4 * (4**2 - 1))),
        "Two neighbours in the wrong order; how far their cosines are apart does not count.",
        within=0.1,
        mistakes={
            "The score is Spearman × 100.": 0.8,
            "This is Pearson's correlation; put ranks in the place of values first.": 49.4,
            "Two ranks differ, so two squares are in the sum.": 100 * (1 - 6 * 1 / (4 * 15)),
        },
    ),
    "01.2": Number(
        2 / 6,
        "Two texts of the same meaning may share a third of their words.",
        within=0.005,
        mistakes={
            "Divide by the words of both texts together, six different ones.": 2 / 4,
            "Each word counts once in the union.": 2 / 8,
        },
    ),
    "02.2": Number(
        math.exp(0.4 / 0.05),
        "At a low temperature the nearest negatives have the larger part of the gradient.",
        within=0.01 * math.exp(0.4 / 0.05),
        mistakes={
            "Divide the difference of the cosines by the temperature before the exponential.": (
                math.exp(0.4)
            ),
            "This is the exponent; the weight is its exponential.": 0.4 / 0.05,
        },
    ),
    "02.3": Number(
        (9 * 0.2 + 0.8) / 10,
        "Each tower counts by its squared length, so the longer one decides (notebook 08 gives "
        "every tower one length).",
        within=0.005,
        mistakes={
            "This is the mean; the longer tower has the larger dot products.": 0.5,
            "Dot products and squared norms grow with the square of the length.": (
                (3 * 0.2 + 0.8) / 4
            ),
            "Divide by the squared length of the long vectors, 3² + 1².": 9 * 0.2 + 0.8,
        },
    ),
    "03.2": Number(
        math.exp(-1),
        "Towers that agree (s near 1) hardly feel the term; it is for those that do not.",
        within=0.005,
        mistakes={
            "That is log base 10; the losses use the natural logarithm.": 0.1,
            "exp(1) is above 1, and a cosine is not.": math.e,
        },
    ),
    "04.2": Number(
        OVER_SEEDS.low,
        f"{OVER_SEEDS.low:+.2f} to {OVER_SEEDS.high:+.2f}: zero is inside, five seeds do not "
        "settle it.",
        within=0.01,
        mistakes={
            "Divide the standard deviation by the root of the number of seeds.": (
                OVER_SEEDS.mean - HALF * len(DIFFERENCES) ** 0.5
            ),
            "With 1.96 the interval is that of a normal distribution; five seeds need t.": (
                OVER_SEEDS.mean - HALF * 1.96 / 2.776
            ),
            "This is the upper end.": OVER_SEEDS.high,
        },
    ),
    "05.3": Number(  # 2 arcsin 0.5
        60,
        "Of equal lengths, so that the angle is all that such a loss can change.",
        mistakes={
            "This is half the angle: the ratio is sin(γ/2).": 30,
            "In degrees, please.": math.radians(60),
            "The cosine of the angle is 1 − 2 · 0.5², not 0.": 90,
        },
    ),
    "06.2": Number(
        1 / 16**0.5,
        "So the energy falls as one over the root of the length, whatever the model does.",
        within=0.002,
        mistakes={
            "The Frobenius norm adds squares: take a root.": 1 / 16,
            "H has the other tokens only, 16 of the 17.": 17**-0.5,
        },
    ),
    "07.2": Number(
        0.0,
        "Cubing keeps the order of all cosines, negative ones too, so it keeps every rank.",
        within=1e-6,
    ),
    "08.2": Number(
        1.36**-0.5,
        "A student can miss a third of the variance and still order pairs much like its teacher.",
        within=0.005,
        mistakes={
            "The student's own variance is larger than the teacher's, by the error.": 0.64**0.5,
            "This is the share of explained variance, not a correlation.": 0.64,
        },
    ),
    "08.3": Number(
        0.7 / (0.7 + 0.3 * 2),
        "In a sum of vectors the lengths are weights too: w alone does not say who leads.",
        within=0.005,
        mistakes={
            "This is the weight; the twin's vectors are longer, and lengths count as well.": 0.7,
            "The twin's vectors are the longer ones, with the weight 0.3.": 1.4 / (1.4 + 0.3),
        },
    ),
    "09.2": Number(  # N + M - 1 >= 768 with N = 64
        705,
        "With fewer the identity stays out of reach, whatever is trained.",
        mistakes={
            "Centring takes one from the rank: one row more.": 704,
            "The sentences of the batch count too: N + M − 1 = d.": 768,
        },
    ),
    "09.3": Number(  # log d + log(e^0.2 / (e^0.2 + d - 1))
        LOWEST,
        "So 0.1 · DCL can fall by 0.02 in all of a training: hardly a slope to follow.",
        within=0.001,
        mistakes={
            "This is log d, the loss of equal features. How far below it is this one?": (
                math.log(768)
            ),
            "This is the loss itself; subtract it from log d.": math.log(768) - LOWEST,
            "A correlation of 1 divided by the temperature is 0.2, not 1.": (
                1 - math.log((math.e + 767) / 768)
            ),
        },
    ),
    "10.2": Number(  # 2N - 1
        63,
        "N − 1 entailed sentences of others, and N contradicting ones, its own included.",
        mistakes={
            "The contradicting sentences of the others count too.": 31,
            "One of the 2N candidates is the positive.": 64,
            "The other anchors are not candidates: only entailed and contradicting sentences.": 95,
        },
    ),
    "10.3": Number(  # -log(e^18 / (2 e^18 + 62))
        math.log(2),
        "A loss near log 2 finds the sentence's own pair, and cannot tell the two apart.",
        within=0.005,
        mistakes={
            "Its own contradicting sentence is a candidate too, with the same cosine.": 0,
            "This is the loss where all 64 cosines are equal.": math.log(64),
            "Only two candidates have the cosine 0.9.": math.log(32),
        },
    ),
    "11.2": Number(
        WEIGHTS[0] / sum(WEIGHTS),
        "Nearly all of the rest belongs to the one negative at 0.7.",
        within=0.003,
        mistakes={
            "The positive is in the denominator too.": WEIGHTS[0] / sum(WEIGHTS[1:]),
            "Divide the cosines by τ before the exponential.": (
                math.exp(COSINES[0]) / sum(map(math.exp, COSINES))
            ),
        },
    ),
    "11.3": Number(
        HALF_PUSH,
        "Half for one of four: at 0.05 it would be nearly all, at 1 hardly more than a third.",
        within=0.005,
        mistakes={
            "There it gets twice the push of the next one; the other two count as well.": (
                0.3 / math.log(2)
            ),
        },
    ),
    "13.2": Number(  # (1 + 1/2 + … + 1/10) / 10
        100 * sum(1 / rank for rank in range(1, 11)) / 10,
        "So 29 on such a task is chance; a table without it looks better than it is.",
        within=0.05,
        mistakes={
            "That is how often it is first; a later rank counts too.": 10,
            "The mean of 1/r is not 1 divided by the mean rank.": 100 / 5.5,
            "In percent, please.": sum(1 / rank for rank in range(1, 11)) / 10,
        },
    ),
    "14.2": Number(  # one right among 100, of a sentence that is chosen 100 times
        100 * 2 / 101 / 100,
        "F1 is below the accuracy wherever two sentences choose the same one.",
        within=0.001,
        mistakes={
            "That is the accuracy. What is the precision of the sentence that is chosen?": 1,
            "In percent, please.": 2 / 101 / 100,
            "That is the F1 of the one sentence; the score is the mean over all 100.": 200 / 101,
            "That is the precision of the one sentence, over 100; F1 also has its recall.": 0.01,
        },
    ),
    "14.3": Number(  # the encoder gets the same ids twice
        1.0,
        "Left are the number of words, the marks, and words in letters that the tokenizer knows.",
        within=1e-6,
        mistakes={
            "That is of their meanings, which the encoder does not get. What are its inputs?": 0.0,
            "Vectors of equal inputs point in the same direction, not in opposite ones.": -1.0,
        },
    ),
    "15.2": Number(  # 15 of 20 positions
        0.75,
        "The longer the batch's longest sentence, the less a short one reads of itself.",
        within=0.005,
        mistakes={
            "That is the share of its own tokens.": 0.25,
            "That would be so if the padding were masked.": 0.0,
            "Count all 20 positions, the tokens and the padding.": 15 / 5,
        },
    ),
    "paper.1": Number(  # d log d against log d, at d = 768 features that are all alike
        768,
        "With λ = 0.1 beside InfoNCE the printed form would be all of the loss.",
        mistakes={
            "N divides the scores, and equal scores stay equal: it changes nothing here.": 768 * 64,
            "Each feature's loss is the same in both forms; then one takes a sum of them.": 1,
        },
    ),
}
