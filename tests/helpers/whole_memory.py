"""Whether a memory is whole: it can be moved in each way, and nothing in it is wrong."""

from __future__ import annotations

from pathlib import Path

from cascade_memory import CascadeMemory, restore


def assert_whole(memory: CascadeMemory, folder: Path) -> None:
    """Check that nothing failed inside, that nothing in a memory is wrong, and that it can be moved in each way."""
    memory.sync()
    assert memory.health().failures == {}
    memory.backup(folder / "backup")
    memory.export(folder / "export.jsonl")
    assert [check for check in memory.examine() if not check.ok] == []
    restore(folder / "backup", folder / "restored")
    with CascadeMemory(folder / "restored", embedder="hashing", learn="off") as again:
        assert again.stats(everywhere=True).cases == memory.stats(everywhere=True).cases
    with CascadeMemory(embedder="hashing", learn="off") as other:
        assert other.import_(folder / "export.jsonl")
        assert other.stats(everywhere=True).cases == memory.stats(everywhere=True).cases
        assert [check for check in other.examine() if not check.ok] == []
