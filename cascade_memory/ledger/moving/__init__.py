"""Copies a ledger from one kind of database into another, row by row, and checks that the copy is equal."""
