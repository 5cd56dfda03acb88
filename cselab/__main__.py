"""`python -m cselab`, for launchers such as accelerate."""

from cselab.cli import main

main()
