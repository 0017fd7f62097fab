"""One fit on many machines: every rank of an MPI job gives its own rows, and all end with the same model (extra `mpi`).

    mpiexec -n 4 python program.py            or, for files:    mpiexec -n 4 python -m maxmargin.spmd train FILE

where program.py reads this rank's rows and fits to those of all:

>>> import numpy as np
>>> from maxmargin.spmd import LinearSVC
>>> rng = np.random.default_rng(0)                 # of each rank: seed it with MPI.COMM_WORLD.rank, or read a part of a file
>>> X = rng.normal(size=(500, 5))
>>> y = np.where(X[:, 0] > 0, "right", "left")
>>> model = LinearSVC().fit(X, y)                  # all ranks call it; comm= takes another communicator than COMM_WORLD
>>> model.status_, model.to_local().__module__
('converged', 'maxmargin.estimators.linear')

An error on one rank is raised on all where they can agree about it (bad data, bad parameters, an exception in a callback).
Where they cannot, because the others wait in an exchange (out of memory within a step), the message is printed and MPI's
Abort ends the job.
"""

from maxmargin.spmd.kernel import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.spmd.linear import LinearSVC, LinearSVR
from maxmargin.spmd.reading import load

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "load"]
