"""Takes secrets out of texts: each becomes a placeholder such as ``[secret:github-token#1]``.

A memory does this with everything that it stores, unless it was opened with ``redact=False``. Texts are searched for tokens
with published prefixes, private keys, passwords in addresses, headers, and assignments such as ``password=...``. What has no
such sign cannot be found: a bare password in a sentence, for example.
"""

# pyright: reportUnusedImport=false
from __future__ import annotations

from cascade_memory.redaction.kinds import KINDS
from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.redaction.saying import log_of

__all__ = ["KINDS", "redact_secrets"]
