"""Another pooling for a finished encoder (JTCSE Table XI)."""

from cselab.errors import ModelError
from cselab.models.backbone import ENCODERS
from cselab.models.encode import Encoder
from cselab.models.ensemble import Ensemble
from cselab.models.sentence import SentenceEncoder
from cselab.models.twin import TwinEncoder


def with_pooling(encoder: Encoder, pooling: str) -> SentenceEncoder | TwinEncoder | Ensemble:
    """The same encoder, read by another pooling; weights are shared, not copied.

    A twin becomes the sum of its towers' pooled vectors, an ensemble the weighted sum of its
    members'. JTCSE Table XI and TNCSE's supplement II score finished checkpoints this way,
    https://arxiv.org/abs/2505.02366, https://arxiv.org/abs/2503.12739.

    Args:
        encoder: A single tower, a twin or an ensemble of them.
        pooling: One of POOLINGS or "pooler"; "mask" where the prompt has a mask token.

    Returns:
        A new encoder; a twin itself for "cls".

    Raises:
        ModelError: For an unknown pooling, "pooler" where a backbone has none, a fused twin (whose
            towers do not run alone), "cls" of a decoder, and an encoder of another kind.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import with_pooling
        >>> encoder = load("tiny-bert")
        >>> by_mean = with_pooling(encoder, "mean")
        >>> encoder.pooling, by_mean.pooling, by_mean.backbone is encoder.backbone
        ('cls', 'mean', True)
    """
    if isinstance(encoder, Ensemble):
        return Ensemble([with_pooling(one, pooling) for one in encoder.members], encoder.weights)
    if isinstance(encoder, TwinEncoder):
        if pooling == "cls":
            return encoder
        if encoder.is_fused:
            raise ModelError(
                f"pooling {pooling!r} reads each tower alone, and a fused twin mixes its towers "
                "inside; only 'cls' is possible"
            )
        return Ensemble(
            [SentenceEncoder(one, encoder.tokenizer, pooling=pooling) for one in encoder.backbones]
        )
    if isinstance(encoder, SentenceEncoder):
        kind = encoder.backbone.config.model_type
        if pooling == "cls" and kind not in ENCODERS:
            raise ModelError(
                f"pooling 'cls' of a {kind!r} decoder: its first token is the same in every "
                "sentence; expected 'last_token', 'mean', 'first_last' or 'last_two'"
            )
        return SentenceEncoder(
            encoder.backbone, encoder.tokenizer, pooling=pooling, prompt=encoder.prompt
        )
    raise ModelError(
        f"a {type(encoder).__name__} has no token states to pool; expected a single tower, a twin "
        "or an ensemble of them"
    )
