"""The wording of the financial tasks."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.template import Template

INTENT = Template(
    about="You see a message from a customer of a bank. Route it: say which one intent it has.",
    options="The possible intents:",
    task="Message",
    form=r"Answer with one intent, spelled as in the list, and with nothing else, in this form: \boxed{...}",
)

SENTIMENT = Template(
    about=(
        "You see a headline of financial news. Find the entities (companies and organisations) that it names, and say for each "
        "whether what the headline says of it is positive, negative or neutral."
    ),
    options="The sentiments:",
    listed=("positive", "negative", "neutral"),
    derived=False,
    task="Headline",
    form=(
        "Answer with one line for each entity, in the order of the headline, and with nothing else. An entity that the "
        "headline names several times gets a line each time. The form of a line:\n"
        '{"entity": "as in the headline", "label": "positive, negative or neutral"}'
    ),
    around=("", ""),
)
