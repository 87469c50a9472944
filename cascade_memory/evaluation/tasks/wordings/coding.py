"""The wording of the tasks that ask for a query."""

from __future__ import annotations

from cascade_memory.evaluation.tasks.template import Template

QUERY = Template(
    about=(
        "You see the schema of an SQLite database and a question about its data. Write the query that answers the question. "
        "A case from memory may be about this database or about another one."
    ),
    task="Question",
    form="Answer with one SQLite query and with nothing else, in this form:\n```sql\nSELECT ...\n```",
    around=("```sql\n", "\n```"),
)
