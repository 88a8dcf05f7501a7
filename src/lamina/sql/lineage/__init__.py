"""What a query reads and gives: scopes, columns, rows, and how far it reads into the time of its parents."""
