"""Rows: made of values, checked, laid out in partitions, compared, and fetched as values."""
