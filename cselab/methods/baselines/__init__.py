"""Peers of the papers' tables, one a file, each with the losses that it alone uses."""
