"""Property tests draw the same examples in every run, so that a red suite means a change and not luck.

To search for new ones: HYPOTHESIS_PROFILE=explore make unit.
"""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
