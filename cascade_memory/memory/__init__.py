"""The public methods of a memory. They check the arguments and call the engine."""
