"""Pretraining small backbones from plain sentences, where no published weights can be had."""

from cselab.pretraining.bert import PretrainConfig, pretrain
from cselab.pretraining.llama import pretrain_decoder
from cselab.pretraining.run import RunConfig

__all__ = ["PretrainConfig", "RunConfig", "pretrain", "pretrain_decoder"]
