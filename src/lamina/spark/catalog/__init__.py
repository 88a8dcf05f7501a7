"""What the catalog holds: versions, the views of environments, and tables over files of others."""
