"""What a plan is made from: the project or its recorded code, state, and the answers of signals."""
