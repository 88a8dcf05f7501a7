"""The right to change a version or an environment: taken, kept, lost; and what was left behind by who lost it."""
