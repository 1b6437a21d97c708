"""``python -m fairlead_conformance``: the command, where its script is not on the path."""

from fairlead_conformance._cli import main

if __name__ == "__main__":
    main()
