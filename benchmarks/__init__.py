"""The benchmark harness: one small file per data set, per solver (ours and peers) and per experiment.

`python -m benchmarks --help` says how to run it, benchmarks/README.md how to add to it.
"""
