"""How things look, each in one place: the colours and what they mean, charts, and the HTML that objects show in a notebook."""
