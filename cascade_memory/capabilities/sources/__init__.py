"""Who wrote what is stored, what is known of them, and quarantine: whose cases are shown, and whose outcomes teach."""
