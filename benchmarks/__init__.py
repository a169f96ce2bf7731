"""How fast the project is: one file a question, each runnable alone (`python -m benchmarks.tell`), all by `python -m benchmarks`."""
