"""What every framework's adapter needs: the active episode, the work at the end of a run, and failing open."""
