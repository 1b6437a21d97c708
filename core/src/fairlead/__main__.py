"""``python -m fairlead``: the command line."""

from fairlead._cli import main

main()
