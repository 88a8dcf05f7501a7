"""What loading has found out, as data, so that files that did not change are not read again."""
