"""All exceptions that this library raises on purpose.

    CascadeError
    ├── InvalidInput (ValueError)        an argument cannot be used; nothing was changed
    │   ├── EmbedderFailed               the embedder raised, or returned no valid vectors; nothing was changed
    │   └── RedactionFailed              the function redact= raised, or returned no text; nothing was changed
    ├── UnknownEpisode (LookupError)     no episode with this id in this namespace
    ├── UnknownCase (LookupError)        no case with this id in this namespace
    ├── UnknownWarning (LookupError)     no warning with this id in this namespace
    ├── EpisodeClosed                    the episode was settled, discarded or has expired
    │   └── AlreadyRewarded              settled before, with another value
    ├── ContentChanged                   the content to be confirmed has changed
    ├── UndoRefused                      an action cannot be taken back; nothing was changed
    ├── QuotaExceeded                    too many reports wait for confirmation
    ├── TicketRefused                    a reward from outside without a valid ticket, or a code used for something else
    ├── MemoryClosed (RuntimeError)      the memory was used after close()
    ├── MemoryForked (RuntimeError)      the memory was used in a forked child
    ├── MissingExtra (ImportError)       an optional package is not installed
    ├── PlatformFailed (ConnectionError) a platform from which scores are read gave no usable answer
    ├── ModelUnavailable (ConnectionError)  a chat model or a search server gave no usable reply in a benchmark
    └── StoreError (OSError)             the folder cannot be used as it is
        ├── StoreUnwritable              no permission, or no space left
        ├── StoreBusy                    another process has been writing for too long
        ├── StoreCorrupt                 not a ledger, or a damaged one
        ├── StoreReplaced                replaced, moved or deleted while it was open
        ├── NamespaceForgotten           just purged by somebody else, with its name
        ├── SchemaTooNew                 written by a newer version of this library
        └── EncoderMismatch              written with another embedder

Catch ``CascadeError`` to keep an agent going whatever happens to its memory; catch ``InvalidInput`` and
``EpisodeClosed`` to answer a caller; let ``StoreError`` reach an operator.
"""

from __future__ import annotations

from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.visible import visible


class CascadeError(Exception):
    """Base class of this library's exceptions.

    Messages may quote texts: secrets are taken out, and invisible characters are written out.
    """

    def __str__(self) -> str:
        """Return the message without secrets, and with invisible characters made visible."""
        return visible(redact_secrets(super().__str__()))


class InvalidInput(CascadeError, ValueError):
    """An argument cannot be used. Nothing was changed."""

    @classmethod
    def cannot_listen(cls, host: str, port: int, error: Exception) -> InvalidInput:
        """Return the error for an address at which no server can listen, with a sentence that says what to do."""
        why = getattr(error, "strerror", None) or error
        return cls(
            f"cannot listen on {host}, port {port} ({why}): pass another port with --port, or stop the program that uses it"
        )


class EmbedderFailed(InvalidInput):
    """The embedder raised, or returned something other than vectors of its dimension. Nothing was changed."""


class RedactionFailed(InvalidInput):
    """The function ``redact=`` raised, or returned something other than a text. Nothing was stored."""


class UnknownEpisode(CascadeError, LookupError):
    """There is no episode with this id in this namespace."""


class UnknownCase(CascadeError, LookupError):
    """There is no case with this id in this namespace."""


class UnknownWarning(CascadeError, LookupError):
    """There is no warning with this id in this namespace: it never existed, or all of its failures are gone."""


class EpisodeClosed(CascadeError):
    """The episode cannot be rewarded any more: it was settled, discarded or has expired."""


class AlreadyRewarded(EpisodeClosed):
    """The episode was settled with another value; pass ``overwrite=True`` to replace it."""


class ContentChanged(CascadeError):
    """The content to be confirmed or corrected has changed since it was seen: look at it again. Nothing was changed."""

    @classmethod
    def of(cls, episode_id: str, fingerprint: str) -> ContentChanged:
        """Create the exception for an episode whose content no longer has this fingerprint."""
        return cls(
            f"the content of episode {episode_id!r} no longer has the fingerprint {fingerprint!r}: "
            "look at it again, and pass its present fingerprint"
        )

    @classmethod
    def of_case(cls, case_id: str, fingerprint: str) -> ContentChanged:
        """Create the exception for a case whose content no longer has this fingerprint."""
        return cls(
            f"case {case_id!r} no longer has the fingerprint {fingerprint!r}: somebody has corrected, hidden or forgotten it "
            "since; look at it again, and pass its present fingerprint"
        )


class UndoRefused(CascadeError):
    """An action cannot be taken back: the message says why. Nothing was changed."""


class QuotaExceeded(CascadeError):
    """The namespace already holds too many reports of agents that nobody has confirmed. Nothing was changed."""


class TicketRefused(CascadeError):
    """A reward from outside came without a valid ticket, or a code was used for something else than what it was made for."""


class MemoryClosed(CascadeError, RuntimeError):
    """The memory was used after ``close()``."""


class MemoryForked(CascadeError, RuntimeError):
    """The memory was opened before ``fork()`` and used in the child."""


class MissingExtra(CascadeError, ImportError):
    """An optional package is not installed. The message names the extra that installs it."""


class PlatformFailed(CascadeError, ConnectionError):
    """LangSmith, Langfuse or Phoenix gave no usable answer: out of reach, a refused key, or other fields than documented.

    The message says what to do, and has no key. Scores that were read before are valid.
    """


class ModelUnavailable(CascadeError, ConnectionError):
    """A chat model or a search server gave no usable reply in a benchmark; no task counts as failed for that reason.

    The message says what to do.
    """


class StoreError(CascadeError, OSError):
    """The folder of the memory cannot be used as it is."""


class StoreUnwritable(StoreError):
    """The folder cannot be written: no permission, or no room left."""


class StoreBusy(StoreError):
    """Another thread or process has been writing for longer than this one may wait."""


class StoreCorrupt(StoreError):
    """The ledger is damaged, or is not a ledger of this library."""


class StoreReplaced(StoreError):
    """The ledger was replaced, moved or deleted while it was open; further writes would be lost."""


class NamespaceForgotten(StoreError):
    """Somebody else has just purged the namespace with its name: nothing was stored; repeat the call."""

    @classmethod
    def now(cls) -> NamespaceForgotten:
        """Return the error with a sentence that says what to do."""
        return cls("the namespace was purged, with its name, in this moment: nothing was stored; do it again")


class SchemaTooNew(StoreError):
    """The ledger was written by a newer version of this library."""


class EncoderMismatch(StoreError):
    """The vectors in the folder were made by another embedder."""
