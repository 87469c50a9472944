"""The paper's pair encoder: a Hugging Face reranker that is trained while it works."""

from cascade_memory.encoders.cross_encoder.encoder import CrossEncoder
from cascade_memory.encoders.cross_encoder.loading import Base, load_base

__all__ = ["Base", "CrossEncoder", "load_base"]
