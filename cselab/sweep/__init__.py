"""Many runs on dask.distributed: a grid, and a store of results that survives crashes."""
