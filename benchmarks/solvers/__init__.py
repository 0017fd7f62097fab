"""One file per solver, ours or a peer; found by listing this folder."""
