"""What a plan is made from: the project or its recorded code, state, signals, rows that are still there."""
