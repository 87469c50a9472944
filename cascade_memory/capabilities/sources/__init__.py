"""Who wrote what is stored, what is known of them, and quarantine: the verbs and the command."""
