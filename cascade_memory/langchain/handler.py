"""The callback handler: assigns every recall to the outermost run around it, and ends the episode when that run ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.callbacks import GraphCallbackHandler
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from cascade_memory.domain.transcript import is_react, is_rendered, thought_of
from cascade_memory.langchain.block import block_around
from cascade_memory.langchain.closing import Closing, was_cut_off
from cascade_memory.langchain.messages import answer_in, model_named, text_of
from cascade_memory.langchain.run_tree import Run, RunTree, ToolCall
from cascade_memory.runs.ending import answered, fail_open, status_of

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory


class CascadeCallbackHandler(GraphCallbackHandler):
    """The callback handler that gives each outermost run one episode.

    Pass it in the config: ``config={"callbacks": [memory.callback]}``. Recalls anywhere below an outermost run (in a retriever,
    a tool, a subagent) belong to its episode; the run and the episode have the same id. When the run ends, ``reward_fn`` is
    asked. A cancelled or abandoned run is censored; an interrupted one stays open until it is resumed. Failures of the handler
    are counted in ``memory.health()`` and never reach the agent.
    """

    run_inline = True  # in order, on the run's thread: an event takes microseconds, and the end goes to a worker
    raise_error = False

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.runs = RunTree()  # the recalls of the retriever, the middleware and the nodes find their episode in it
        self._closing = Closing(memory)

    # -- runs begin --------------------------------------------------------------------------------------------------

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Record a chain, a graph or a node. The outermost one begins an episode; a graph may resume an interrupted one."""
        with fail_open(self._memory, "callback"):
            self._close_lost()
            block = block_around(self._memory)
            run, is_new = self.runs.start(run_id, parent_run_id, metadata, is_chain=True, block=block)
            if run is None or not is_new or run.tool is not None or run.root.block is not None:
                return
            if isinstance(inputs, Command):
                run.root.interrupted = False  # it was resumed below the same root
            thread = (metadata or {}).get("thread_id")
            # Only a graph has a thread: this is the outermost run, or a step of it.
            if thread is not None and run.root.thread_id is None:
                run.root.thread_id = str(thread)
                self._closing.take_up(run.root, resumes=inputs is None or isinstance(inputs, Command))

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Record a tool call; calls that a tool makes itself are part of that tool call."""
        with fail_open(self._memory, "callback"):
            run, _ = self.runs.start(run_id, parent_run_id, metadata, is_chain=False)
            if run is None or run.tool is not None:
                return
            name = str((serialized or {}).get("name") or more.get("name") or "tool")
            call_id = more.get("tool_call_id")
            run.tool = ToolCall(
                name=name,
                arguments=inputs if inputs is not None else input_str,
                thought=run.root.thought,
                call_id=None if call_id is None else str(call_id),
            )
            run.root.thought = ""
            run.root.calls.append(run.tool)

    def _noted(
        self,
        *_: Any,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **__: Any,
    ) -> None:
        """Record the start of a run that adds no step of its own: a model or a retriever."""
        with fail_open(self._memory, "callback"):
            run = self.runs.start(run_id, parent_run_id, metadata, is_chain=False)[0]
            if run is not None:
                run.asked = (metadata or {}).get("ls_model_name")

    on_chat_model_start = on_llm_start = on_retriever_start = _noted

    def _is_over(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """Record that a model or retriever run has ended."""
        with fail_open(self._memory, "callback"):
            self.runs.end(run_id)

    on_llm_error = on_retriever_end = on_retriever_error = _is_over

    # -- during runs -------------------------------------------------------------------------------------------------

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Record what the model said before it called a tool, as the thought of that step."""
        with fail_open(self._memory, "callback"):
            run = self.runs.find(run_id)
            self.runs.end(run_id)
            if run is None or run.tool is not None:
                return
            for generation in [one for batch in response.generations for one in batch][:1]:
                message = getattr(generation, "message", None)
                told = getattr(message, "response_metadata", None)
                self._answered(run, told, generation.generation_info, response.llm_output)
                text = text_of(message) if isinstance(message, BaseMessage) else str(generation.text)
                if is_react(text):
                    run.root.thought = thought_of(text)
                elif isinstance(message, AIMessage) and message.tool_calls:
                    run.root.thought = text

    def _answered(self, run: Run, *places: Mapping[str, Any] | None) -> None:
        """Record which model has answered, for every episode that its answer may end; at last the model that was asked."""
        name = model_named(*places) or run.asked
        block = run.root.block
        own = None if block is None else block.id
        for episode_id in {run.root.episode_id, own, *(one for one, _ in run.root.adopted)}:
            answered(self._memory, episode_id, name)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Record the tool's answer."""
        with fail_open(self._memory, "callback"):
            run = self.runs.find(run_id)
            if run is not None and run.tool is not None and not run.tool.observation:
                run.tool.observation = answer_in(output)
                run.tool.own = run.tool.own or is_rendered(run.tool.observation)
                run.tool.failed = getattr(output, "status", None) == "error"
            self.runs.end(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record how the tool failed; an interrupt is not a failure."""
        with fail_open(self._memory, "callback"):
            run = self.runs.find(run_id)
            if run is not None and run.tool is not None:
                if isinstance(error, GraphInterrupt):
                    # The call starts again when it is resumed.
                    run.root.calls = [call for call in run.root.calls if call is not run.tool]
                else:
                    run.tool.observation, run.tool.failed = f"{type(error).__name__}: {error}", True
            self.runs.end(run_id)

    def on_interrupt(self, event: Any) -> None:
        """Record that the graph waits for a person: the end of this run is not the end of the episode."""
        with fail_open(self._memory, "callback"):
            run = self.runs.find(event.run_id)
            if run is not None:
                self._pause(run)

    # -- runs end ----------------------------------------------------------------------------------------------------

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """End the episode if this was the outermost run."""
        self._ended(run_id, "ok", outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the episode if this was the outermost run; if the run was cancelled or abandoned, censor the episode."""
        if isinstance(error, GraphInterrupt):  # ``on_interrupt`` is not called for a handler attached by ``attach()``
            with fail_open(self._memory, "callback"):
                run = self.runs.find(run_id)
                if run is not None:
                    self._pause(run)
        self._ended(run_id, status_of(error), None, left=isinstance(error, GeneratorExit))

    def _pause(self, run: Run) -> None:
        if run.tool is None:  # a graph inside a tool handles its own interrupts
            run.root.interrupted = True
            self._closing.pause(run.root)

    def _ended(self, run_id: UUID, status: str, outputs: Any, *, left: bool = False) -> None:
        with fail_open(self._memory, "callback"):
            root = self.runs.end(run_id, well=status == "ok")
            if root is not None and left and root.interrupted:
                status = "ok"  # the reader left when it had seen the interrupt: the run waits as well
            if root is not None and status == "ok" and was_cut_off(root) and not root.interrupted:
                status, outputs = "cancelled", None
            if root is not None:
                self._closing.close(root, status, outputs)

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _close_lost(self) -> None:
        """Censor the episodes of runs whose end was not reported and will not be reported any more."""
        for root in self.runs.lost():
            self._closing.close(root, "cancelled", None)

    def drain(self) -> None:
        """Wait until every run that has ended is processed."""
        with fail_open(self._memory, "callback"):
            self._close_lost()
        self._closing.drain()

    @property
    def open_runs(self) -> int:
        """0 if no run is being watched, otherwise more: an outermost run counts twice, and the runs below it until it ends."""
        return len(self.runs)

    def __deepcopy__(self, memo: dict[int, Any]) -> CascadeCallbackHandler:
        """Return this same object: a copied configuration must have the handler that watches the runs."""
        return self

    def __repr__(self) -> str:
        """Describe the handler in one line."""
        return f"CascadeCallbackHandler({self._memory!r})"
