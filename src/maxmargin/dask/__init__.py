"""Machines for dask arrays and frames that live on a cluster's workers (extra `dask`).

They take the parameters of `maxmargin`'s machines of the same names, and `client`. X never comes to the client.

>>> import dask.array as da
>>> from dask.distributed import Client
>>> from maxmargin.dask import LinearSVC
>>> with Client(processes=False, dashboard_address=None) as client:
...     X = da.random.default_rng(0).normal(size=(2000, 5), chunks=(500, 5))
...     y = (X[:, 0] > 0).astype(int)
...     model = LinearSVC(client=client).fit(X, y)
...     model.status_, type(model.predict(X)).__name__, type(model.to_local()).__module__
('converged', 'Array', 'maxmargin.estimators.linear')
"""

from maxmargin.dask.budget import BudgetSVC
from maxmargin.dask.divided import DCSVC, DCSVR
from maxmargin.dask.linear import LinearSVC

__all__ = ["DCSVC", "DCSVR", "BudgetSVC", "LinearSVC"]
