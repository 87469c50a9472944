"""Embedders from a folder or from the Hugging Face hub, loaded with transformers."""

from cascade_memory.encoders.text_model.embedder import TextModelEmbedder

__all__ = ["TextModelEmbedder"]
