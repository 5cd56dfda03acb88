"""Many runs on dask.distributed: a grid, a store of results that survives crashes, and reports from it."""
