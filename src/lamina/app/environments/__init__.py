"""Pointers and views of environments: moved, promoted, followed by statements, given copies of their own."""
