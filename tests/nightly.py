"""The long way: with POSTROOM_NIGHTLY=1 some tests look further than a run on a desk or in CI has time for.

    POSTROOM_NIGHTLY=1 pytest tests/test_chaos.py tests/test_tree_model.py tests/test_memory.py tests/test_storm.py tests/test_workers.py tests/crash

test_chaos         60 seconds of chaos in place of 8
test_tree_model    5,000 examples in place of 200 or of 40 seconds; about 20 minutes
test_memory        a million short children in place of 5,000; about 5 minutes
test_storm         20,000 random runs in place of 150, a minute of fifty sessions at once in place of 4 seconds; about 10 minutes
crash/             1,000 kills of each store in place of 30; POSTROOM_KILLS says how many; about 15 minutes
test_workers       four workers in place of two and five rounds of trouble in place of one; 2,000 crossing commits in place of 240
"""

import os

NIGHTLY = bool(os.environ.get("POSTROOM_NIGHTLY"))
