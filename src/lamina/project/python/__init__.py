"""The Python of a project: found by its imports, captured as text, read without being run, and run when asked."""
