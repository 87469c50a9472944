"""Puts the site together: routes, pages, and the gate before them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from cascade_memory import CascadeMemory
from cascade_memory.capabilities import parts
from cascade_memory.domain import check_actor, check_reward
from cascade_memory.errors import (
    CascadeError,
    ContentChanged,
    EpisodeClosed,
    InvalidInput,
    QuotaExceeded,
    UndoRefused,
    UnknownCase,
    UnknownEpisode,
    UnknownWarning,
)
from cascade_memory.inspector import actions, pages_cases, pages_episodes, pages_measured
from cascade_memory.inspector.gate import FIELDS, FORM, LOOPBACK, VISITOR, App, Gate, Scope, set_cookie
from cascade_memory.inspector.remembered import Remembered
from cascade_memory.inspector.sessions import MOST_NAME, Sessions, Visit
from cascade_memory.inspector.shown import HERE, environment
from cascade_memory.inspector.view import Act, Elsewhere, Missing, Page, Rendered, View, linking
from cascade_memory.memory import explained_rows

Actor: TypeAlias = "str | Callable[[Scope], str]"

PAGES: dict[str, Page] = {
    "cases": pages_cases.cases,
    "case": pages_cases.case,
    "episodes": pages_episodes.episodes,
    "episode": pages_episodes.episode,
    "learning": pages_measured.learning,
    "health": pages_measured.health,
    "forget": actions.preview,
    **{name: page for part in parts("pages") for name, page in part.PAGES.items()},
}
_TABS = (
    ("cases", "Cases"),
    ("episodes", "Episodes"),
    ("learning", "Learning"),
    ("health", "Health"),
    *(tab for part in parts("pages") for tab in part.TABS),
)
ACTS: dict[str, Act] = {
    **actions.ACTS,
    **{name: act for part in parts("pages") if hasattr(part, "ACTS") for name, act in part.ACTS.items()},
}
_AT_ONCE = 2  # pages that are made at the same time: agents come first
_STATIC = {
    "inspector.css": "text/css; charset=utf-8",
    "inspector.js": "text/javascript; charset=utf-8",
    "inspector.svg": "image/svg+xml",
}
_PUBLIC = ("/start", "/enter", "/locked", *(f"/static/{name}" for name in _STATIC))


def app(
    memory: CascadeMemory,
    *,
    edit: bool = False,
    actor: Actor | None = None,
    allow_hosts: Collection[str] = LOOPBACK,
    namespaces: Collection[str] | None = None,
    rate: float = 1.0,
) -> App:
    """Make the inspector as an ASGI application, to be mounted by an application that has its own login.

    Whoever reaches it sees the memory: put it behind the login. All other checks stay (names of hosts, forms of other sites,
    framing, sizes), and the application works below any path.

    Args:
        memory: The memory; close it after the application has ended.
        edit: Allow corrections, verdicts and forgetting, which are recorded with the name that ``actor`` gives.
        actor: Who acts: a function that gets the ASGI scope of a request and returns a name, or one name for all.
        allow_hosts: The names under which browsers ask for it, without ports: without this list, any site could let its own
            name lead here.
        namespaces: Only these can be looked at; None: all.
        rate: The share of episodes about which people are asked for a verdict (the paper's revision rate).
    """
    if edit and actor is None:
        raise InvalidInput(
            "edit=True needs actor=: a function that returns the name of whoever sent a request, such as "
            'lambda scope: scope["user"].display_name'
        )
    return guarded(
        Site(memory, edit=edit, actor=actor, namespaces=namespaces, sessions=None, cookie="cascade_inspector", rate=rate),
        allow_hosts,
    )


def guarded(site: Site, hosts: Collection[str]) -> Gate:
    """Return the application of a site behind a ``Gate``, which checks every request."""
    return Gate(site.routed(), hosts=hosts, sessions=site.sessions, edit=site.edit, cookie=site.cookie, public=_PUBLIC)


class Site:
    """The pages of one memory. They are made on threads of their own, a few at a time, so that agents are not slowed down."""

    def __init__(
        self,
        memory: CascadeMemory,
        *,
        edit: bool,
        actor: Actor | None,
        namespaces: Collection[str] | None,
        sessions: Sessions | None,
        cookie: str,
        rate: float = 1.0,
    ) -> None:
        self._rate = check_reward(rate, "rate")
        self.memory, self.edit, self.sessions, self.cookie = memory, edit, sessions, cookie
        self._actor = actor
        self._only = None if namespaces is None else frozenset(namespaces)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "cascade-memory-inspector")
        self._measuring = ThreadPoolExecutor(1, "cascade-memory-measuring")
        self._remembered = Remembered(self._measuring)
        self._templates = environment()
        self._static = {name: (HERE / "static" / name).read_bytes() for name in _STATIC}

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._measuring.shutdown(wait=True, cancel_futures=True)

    def routed(self) -> App:
        """Return the application without its gate."""
        shown = [Route(f"/{name}", self._shows(name, page)) for name, page in PAGES.items()]
        done = [Route(f"/do/{name}", self._does(name), methods=["POST"]) for name in ACTS]
        others = [
            *done,
            Route("/", self._home),
            Route("/start", self._start),
            Route("/enter", self._enter, methods=["GET", "POST"]),
            Route("/locked", self._locked),
            Route("/static/{name}", self._file),
        ]
        found: Any = Starlette(routes=[*shown, *others], exception_handlers={404: self._nothing, 500: self._failed})
        return found

    # -- pages -------------------------------------------------------------------------------------------------------

    def _shows(self, name: str, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._made, name, page, request)

        return answer

    def _does(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        return self._shows("", functools.partial(actions.do, name))

    def _made(self, name: str, page: Page, request: Request) -> Response:
        """Make a page, or a page that says why there is none; called on one of the site's threads."""
        try:
            with explained_rows(self.memory, but=(Elsewhere, Missing)):
                view = self._view(request)
                return self._html(request, page(view), view, name)
        except Elsewhere as done:
            return RedirectResponse(done.address, 303)
        except (Missing, UnknownCase, UnknownEpisode, UnknownWarning) as error:
            return self._message(request, 404, "Not found", str(error))
        except InvalidInput as error:
            return self._message(request, 400, "This cannot be done", str(error))
        except (ContentChanged, EpisodeClosed, UndoRefused, QuotaExceeded) as error:
            return self._message(request, 409, "Nothing was changed", str(error))
        except CascadeError as error:
            return self._message(request, 503, "The memory cannot answer", f"{type(error).__name__}: {error}")

    def _view(self, request: Request) -> View:
        names = self._namespaces()
        fields: dict[str, str] = request.scope.get(FIELDS, {})
        wanted = fields.get("ns") or request.query_params.get("ns") or self._first(names)
        if wanted not in names:
            raise Missing(f"There is no namespace {wanted!r} here.")
        visitor = self._visitor(request)
        root = str(request.scope.get("root_path", ""))
        return View(
            memory=self.memory.acting(actor=visitor or None, channel="inspector", namespace=wanted),
            namespace=wanted,
            namespaces=names,
            query=dict(request.query_params),
            link=linking(root, wanted),
            edit=self.edit,
            visitor=visitor,
            form=request.scope.get(FORM, ""),
            remembered=self._remembered,
            fields=fields,
            acts=ACTS,
            rate=self._rate,
        )

    def _namespaces(self) -> tuple[str, ...]:
        stored = self.memory.data.namespaces()
        if self.memory.namespace not in stored:  # nothing was stored in it yet
            stored = [self.memory.namespace, *stored]
        return tuple(sorted(one for one in stored if self._only is None or one in self._only))

    def _first(self, names: tuple[str, ...]) -> str:
        return self.memory.namespace if self.memory.namespace in names else next(iter(names), "")

    def _visitor(self, request: Request) -> str:
        visit: Visit | None = request.scope.get(VISITOR)
        if visit is not None:
            return visit.actor
        return self._actor(request.scope) if callable(self._actor) else self._actor or ""

    def _html(self, request: Request, rendered: Rendered, view: View | None, name: str) -> HTMLResponse:
        root = str(request.scope.get("root_path", ""))
        text = self._templates.get_template(rendered.template).render(
            **rendered.values,
            view=view,
            link=linking(root, "") if view is None else view.link,
            static=f"{root}/static",
            tabs=_TABS,
            current=name if name in dict(_TABS) else f"{name}s",
            reload=rendered.reload,
        )
        return HTMLResponse(text, rendered.status)

    def _message(self, request: Request, status: int, title: str, text: str) -> Response:
        try:
            view = self._view(request)
        except (Missing, CascadeError):
            view = None
        return self._html(request, Rendered("message.html", {"title": title, "text": text}, status), view, "")

    # -- coming in ---------------------------------------------------------------------------------------------------

    async def _home(self, request: Request) -> Response:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/cases", 303)

    async def _start(self, request: Request) -> Response:
        """Trade the token of a link for a cookie; a browser that only fetches the page ahead of time does not use it up."""
        ahead = "prefetch" in request.headers.get("sec-purpose", "") or request.method != "GET"
        cookie = None if self.sessions is None or ahead else self.sessions.follow(request.query_params.get("token", ""))
        if cookie is None:
            return await self._locked(request)
        return self._entered(request, cookie)

    async def _enter(self, request: Request) -> Response:
        if request.method != "POST" or self.sessions is None:
            return await self._locked(request)
        fields: dict[str, str] = request.scope[FIELDS]
        name = " ".join(fields.get("name", "").split())
        if not 0 < len(name) <= MOST_NAME:
            return self._locked_page(request, f"Say who you are, in up to {MOST_NAME} letters: what you do is recorded.")
        try:
            check_actor(name)
        except InvalidInput as error:
            return self._locked_page(request, f"This name cannot be recorded: {error}.")
        cookie = self.sessions.enter(fields.get("token", "").strip(), name)
        if cookie is None:
            return self._locked_page(request, "This token is wrong.")
        return self._entered(request, cookie)

    def _entered(self, request: Request, cookie: str) -> Response:
        """Set the cookie, and show a page that leads on to the other pages.

        A redirect would not work here: a browser that came from another site would follow it without the new cookie, because
        the cookie has ``SameSite=Strict``.
        """
        home = f"{request.scope.get('root_path', '')}/cases"
        answer = self._html(request, Rendered("entered.html", {"home": home}), None, "")
        answer.raw_headers.append((b"set-cookie", set_cookie(request.scope, self.cookie, cookie)))
        return answer

    async def _locked(self, request: Request) -> Response:
        return self._locked_page(request, "")

    def _locked_page(self, request: Request, error: str) -> Response:
        takes = self.sessions is not None and self.sessions.takes_token
        enter = f"{request.scope.get('root_path', '')}/enter"
        return self._html(request, Rendered("locked.html", {"takes": takes, "enter": enter, "error": error}, 401), None, "")

    # -- the rest ----------------------------------------------------------------------------------------------------

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            return self._message(request, 404, "Not found", "There is no such file.")
        return Response(self._static[name], media_type=_STATIC[name])

    async def _nothing(self, request: Request, _: Exception) -> Response:
        loop = asyncio.get_running_loop()
        told = (request, 404, "Not found", "There is no such page.")
        return await loop.run_in_executor(self._threads, self._message, *told)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Say that a page could not be made; the process that runs the inspector writes the reason to its log."""
        text = f"This page could not be made ({type(error).__name__}). The log of the inspector says more."
        return self._html(request, Rendered("message.html", {"title": "Something failed", "text": text}, 500), None, "")


def start_path(token: str) -> str:
    """Return the path of a link that lets one person in."""
    return f"/start?{urlencode({'token': token})}"
