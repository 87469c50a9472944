"""The nouns: plain frozen values that every floor above may use."""
