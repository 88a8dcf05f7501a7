"""Python that users wrote, run beside Spark from what was recorded of it: models and hooks."""
