"""One file per data set; found by listing this folder."""
