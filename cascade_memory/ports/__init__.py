"""What a part must be able to do to be plugged in. Extend by passing an object, not by registering a name."""
