"""`python -m regard` is the command."""

from regard.cli import main

main()
