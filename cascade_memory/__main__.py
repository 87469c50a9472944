"""Makes ``python -m cascade_memory`` the same as ``cascade-memory``."""

from cascade_memory.cli import main

raise SystemExit(main())
