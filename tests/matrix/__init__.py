"""Other releases of torch: an environment for each, the programs of the corpus captured and run in it."""
