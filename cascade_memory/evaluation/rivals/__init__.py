"""Other memories for experience, each a class with ``recall`` and ``reward``, which the benchmark plays like our own."""
