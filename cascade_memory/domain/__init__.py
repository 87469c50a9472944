"""The terms of the library as plain, immutable values, which all other packages may use."""
