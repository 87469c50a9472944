"""From text to numbers: embedders, pair encoders, and the judgement whether two solutions agree."""
