"""What a memory offers to hand-written LangGraph graphs: nodes that recall and learn, and a guard for their tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from cascade_memory.cycle.chat_turns import Show
from cascade_memory.domain.display import quoted
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain.documents import with_cases
from cascade_memory.langchain.guarding import ToolGuard, tool_guard
from cascade_memory.langchain.nodes import Score, Skip, Text, learn_node, recall_node

if TYPE_CHECKING:
    from cascade_memory.assembly.cascade import CascadeMemory as Engine
    from cascade_memory.langchain.handler import CascadeCallbackHandler


class GraphHooks:
    """The part of ``CascadeMemory`` that is for hand-written graphs."""

    if TYPE_CHECKING:  # a plain annotation would be a field of the retriever
        k: int
        _engine: Engine
        _handler: CascadeCallbackHandler

    def recall_node(
        self, *, query: Text = None, skip: Skip = None, key: str = "cascade", show: Show | None = None
    ) -> Runnable[Any, Any]:
        """Build a LangGraph node that recalls and puts the episode into ``state[key]`` (plain JSON).

        Args:
            query: The task: a key of the state or a function of the state; by default the last human message. A function that
                returns None says that there is no task.
            skip: A function that gets the user's last message (or the text that ``query`` finds), and returns True if it is no
                task, such as a command: then nothing is recalled and no episode is opened.
            key: Where to put the episode; the graph's state must declare this key.
            show: How ``inject`` shows the cases: as "text" between fences, or as earlier "turns" of the chat. By default one
                case is text, and several are turns.
        """
        return recall_node(self._engine, self._handler, query=query, skip=skip, key=key, k=self.k, show=show)

    def learn_node(self, *, solution: Text = None, reward: Score = None, key: str = "cascade") -> Runnable[Any, Any]:
        """Build a LangGraph node that ends the episode in ``state[key]``.

        Args:
            solution: The answer: a key of the state or a function of the state; by default it is read from the messages.
            reward: A function of the state; by default the memory's ``reward_fn`` is asked. Exceptions of this
                function reach the graph, while those of ``reward_fn`` are only counted.
            key: Where ``recall_node`` put the episode.
        """
        return learn_node(self._engine, solution=solution, reward=reward, key=key)

    def tool_guard(self, *, key: str = "cascade") -> ToolGuard:
        """Build the arguments that let a ``ToolNode`` warn before it runs a tool: ``ToolNode(tools, **memory.tool_guard())``.

        A call that is a known mistake is answered with the warning instead; if the model calls again, the tool runs.

        Args:
            key: Where ``recall_node`` put the episode. If there is no episode, the guard takes that of the surrounding
                ``with`` block, or of the outermost run that ``memory.callback`` sees.

        >>> from cascade_memory.langchain import CascadeMemory
        >>> from langgraph.prebuilt import ToolNode
        >>> node = ToolNode([], **CascadeMemory(embedder="hashing").tool_guard())
        """
        return tool_guard(self._engine, self._handler, key=key)

    @staticmethod
    def inject(
        messages: Sequence[BaseMessage], episode: Mapping[str, Any] | None, *, tools: Collection[str] = ()
    ) -> list[BaseMessage]:
        """Put the episode's cases before the task, or as turns before the chat, in a copy of the messages.

        ``tools`` are the names of the tools that the model is offered. Cases that are shown as turns have tool calls only if
        all tools that these cases called are among them; otherwise the calls are text.
        """
        given: Any = episode
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInput(f"inject(messages, episode) needs state[key] of recall_node, not {quoted(given)}")
        return with_cases(messages, episode or {}, tools)
