"""The learning itself: numpy arrays in, numpy arrays out. No text, no case, no file is known here."""
