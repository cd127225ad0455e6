"""A planner's own table, row by row: a model, a GPU, a load in; figures out."""
