"""Pretraining of small backbones and translators, where no published weights are available."""
