"""Asks pyright's language server what an editor would ask it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any


class LanguageServer:
    """A server for one folder; it speaks JSON-RPC on its standard input and output."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number, self._version = folder, 0, 0
        (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "off"}))

    def __enter__(self) -> LanguageServer:
        command = [sys.executable, "-c", "import sys; from pyright.langserver import main; sys.exit(main('--stdio'))"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        folder = {"uri": self._folder.as_uri(), "name": "folder"}
        capabilities = {"workspace": {"configuration": True}, "textDocument": {"completion": {"completionItem": {}}}}
        settings = {"processId": None, "rootUri": folder["uri"], "capabilities": capabilities, "workspaceFolders": [folder]}
        self._ask("initialize", settings)
        self._send({"method": "initialized", "params": {}})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def completions(self, code: str) -> set[str]:
        """Return what is offered at the end of a program."""
        self._version += 1
        uri = (self._folder / f"program{self._version}.py").as_uri()
        opened = {"uri": uri, "languageId": "python", "version": 1, "text": code}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})
        lines = code.split("\n")
        place = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self._ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": place})
        items: list[dict[str, Any]] = found["items"] if isinstance(found, dict) else found or []
        return {item["label"] for item in items}

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if "id" in message and "method" in message:
                self._send({"id": message["id"], "result": self._answer(message)})

    def _answer(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        known = {"python": {"pythonPath": sys.executable}}
        return [known.get(item.get("section")) for item in message["params"]["items"]]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the language server has ended"
        return json.loads(self._process.stdout.read(length))
