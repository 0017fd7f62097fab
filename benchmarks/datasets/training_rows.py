"""The training rows of other sets alone, a fifth of them held out: what constants are chosen on, so that no test row has a
say. `covtype_train` splits the training rows of `covtype`, and so on.
"""

from benchmarks import base
from benchmarks.datasets import _make

SETS = ("covtype", "ijcnn1", "a9a", "w8a", "skin", "susy", "mnist_round", "kddcup99")


class _TrainingRows(base.Dataset):
    of = ""

    def load(self):
        data = base.discover("datasets")[self.of]().load()
        split = _make.split(data.X_train, data.y_train)
        split.source = data.source
        return split


globals().update({of: type(of, (_TrainingRows,), {"name": f"{of}_train", "of": of}) for of in SETS})
