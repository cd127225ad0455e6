"""Running a model: hardware, parallelism, what fits, training, serving, cost."""
