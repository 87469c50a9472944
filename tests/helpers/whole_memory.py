"""Whether a memory is whole: it can be moved in each way, and nothing in it is wrong."""

from __future__ import annotations

from pathlib import Path

from cascade_memory import CascadeMemory, restore


def assert_whole(memory: CascadeMemory, folder: Path) -> None:
    """Check that nothing failed inside, that nothing in a memory is wrong, and that it can be moved in each way."""
    memory.sync()
    assert memory.health().failures == {}
    memory.data.backup(folder / "backup")
    memory.data.export(folder / "export.jsonl")
    assert [check for check in memory.data.examine() if not check.ok] == []
    restore(folder / "backup", folder / "restored")
    with CascadeMemory(folder / "restored", embedder="hashing", learn="off") as again:
        assert again.stats(everywhere=True).cases == memory.stats(everywhere=True).cases
    with CascadeMemory(embedder="hashing", learn="off") as other:
        assert other.data.import_(folder / "export.jsonl")
        assert other.stats(everywhere=True).cases == memory.stats(everywhere=True).cases
        assert [check for check in other.data.examine() if not check.ok] == []
