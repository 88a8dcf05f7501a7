"""`lamina.yaml` and the environment variables that overrule it, as values."""
