"""What holds for all tests of core."""

collect_ignore = ["opinfo_child.py"]  # a program, whose imports change torch for the whole process
