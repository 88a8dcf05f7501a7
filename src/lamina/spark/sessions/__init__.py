"""Spark sessions: started, handed in or remote; their settings, packages, processes and logs."""
