"""Pretraining a small BERT from plain sentences, where no published weights can be had."""

from cselab.pretraining.bert import PretrainConfig, pretrain

__all__ = ["PretrainConfig", "pretrain"]
