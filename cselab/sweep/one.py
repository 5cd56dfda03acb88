"""One run of a sweep without a cluster: what `cselab train` does, in one process or in all that a launcher has started."""
