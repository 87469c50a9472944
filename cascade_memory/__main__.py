"""``python -m cascade_memory`` is ``cascade-memory``."""

from cascade_memory.cli import main

raise SystemExit(main())
