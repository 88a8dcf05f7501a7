"""YAML that remembers where everything was written, and the checks that its keys and values get."""
