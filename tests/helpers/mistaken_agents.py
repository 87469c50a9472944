"""LangChain agents that repeat a mistake, for tests of warnings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from mistakes import RIGHT, TASK, answered, is_warning
from scripted import call

ASK = {"messages": [("user", TASK)]}


class Database:
    """A tool, and the queries that reached it."""

    def __init__(self, fails: type[Exception] = ToolException) -> None:
        self.ran: list[str] = []

        def query(sql: str) -> str:
            self.ran.append(sql)
            try:
                return answered(sql)
            except ValueError as error:
                raise fails(str(error)) from None

        async def aquery(sql: str) -> str:
            await asyncio.sleep(0)
            return query(sql)

        self.tool = StructuredTool.from_function(query, aquery, description="Ask the database.", handle_tool_error=True)


def query(*sql: str) -> AIMessage:
    """A turn of the model, with as many calls as there are queries."""
    first, *others = (call("query", sql=one) for one in sql)
    first.tool_calls += [one.tool_calls[0] for one in others]
    return first


def tool_messages(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def heeding(messages: list[BaseMessage]) -> AIMessage:
    """Repair the query after a warning, or give up."""
    return query(RIGHT) if is_warning(messages[-1].text) else AIMessage("I do not know.")
