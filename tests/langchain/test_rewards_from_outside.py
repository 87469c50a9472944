"""A reward from outside, for an episode that LangChain's run has opened: the ticket is made for the answer."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableLambda

from cascade_memory import Trust
from cascade_memory.errors import TicketRefused
from cascade_memory.langchain import CascadeMemory


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_thumb_brings_the_ticket_that_was_made_for_the_answer(awaited: bool):
    with CascadeMemory(embedder="hashing", trust=Trust(tickets=True)) as memory:
        chain = RunnableLambda(lambda task: "It is 42." if memory.invoke(task) else "I do not know.")
        chain.invoke("What is 6 times 7?", {"callbacks": [memory.callback], "metadata": {"thread_id": "t1"}})
        (pending,) = memory.episodes.pending()
        ticket = memory.episodes.ticket_of(pending.id)
        with pytest.raises(TicketRefused):
            memory.reward(thread_id="t1", value=1.0, source="user")
        thumb = {"thread_id": "t1", "value": 1.0, "source": "user", "ticket": ticket}
        await memory.areward(**thumb) if awaited else memory.reward(**thumb)
        assert memory.stats().rewards == 1
