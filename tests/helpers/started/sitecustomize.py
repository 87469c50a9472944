"""Runs at the start of each process that a test starts, while memories are kept in databases: see ``in_databases.py``."""

import importlib.abc
import importlib.machinery
import os
import sys


class _Installs(importlib.abc.Loader):
    """Loads a module as usual, and lets folders mean databases as soon as it is there."""

    def __init__(self, usual):
        self._usual = usual

    def create_module(self, spec):
        return self._usual.create_module(spec)

    def exec_module(self, module):
        self._usual.exec_module(module)
        sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import in_databases

        in_databases.install()


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "cascade_memory.assembly.cascade":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Installs(spec.loader)
        return spec


if os.environ.get("CASCADE_TEST_SERVER"):
    sys.meta_path.insert(0, _Finder())
