"""What holds for all tests of core."""

collect_ignore = ["opinfo_child.py", "infer/captured.py"]  # programs, whose imports change torch for the whole process
