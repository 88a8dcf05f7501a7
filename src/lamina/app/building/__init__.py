"""Use cases that change tables: applying plans, batch after batch, and repairing what they made."""
