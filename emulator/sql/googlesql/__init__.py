"""GoogleSQL: from the nodes of the grammar to the trees that the compiler knows."""
