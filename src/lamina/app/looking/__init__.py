"""Use cases that change no table of a model: plans, queries, intervals, history, and external tables."""
