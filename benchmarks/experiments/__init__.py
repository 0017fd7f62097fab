"""One file per experiment; found by listing this folder."""
