"""The architecture, as a table that is enforced: a module may import only modules of rows above its own.

One message, top to bottom: a ref makes an envelope, the router admits it, the mailbox keeps it, a receive point takes
it, the agent's turn decides, a model answers, calls run as children, their ends are mail again, an exit reaches the
supervisor, which looks it up in its table. No step reaches back to an earlier file but by sending mail.

To add a module, add a row where it is read: its name, then what a reader finds there. `#` starts a heading.
"""

import ast
import sys
from collections.abc import Iterator

import pytest
from source import Module, modules

TABLE = """
# the kernel: what happened, and how mail travels
actors._exit                how a life ends, as a value
actors._errors              every error, split by who must act
actors._check               settings, held against what they may be
actors._extras              where optional packages are loaded
actors._inherit             "nothing was said here", where None says something
actors._text                text that has no UTF-8
actors._outcome             what became of a tool call, as a value
actors._envelope            what travels: senders, bodies, the envelope, the receipt
actors._identity            who is acting, hence who sends

# JSON, strict and lossless
actors._problems            what is wrong with a value, each with its path
actors._types               annotations taken apart
actors._annotations         what a string annotation means
actors._records             the fields of a record
actors._strict              from JSON to typed values
actors._json                plain JSON, with media in it
actors._tagged              records of a union told apart, and written
actors._codec               envelopes as JSON

# an actor: from a message that is accepted to a life that ends
actors._waiters             a task parked until a sync call wakes it
actors._deadlines           many deadlines, one timer
actors._window              ids that senders chose, remembered
actors._mailbox             the log of accepted mail, and its cursors
actors._receive             waiting for mail
actors._reply               the one-shot answer to an ask
actors._ref                 how anything reaches an actor
actors._dispatch            which method handles a message
actors._life                one life of an actor, and its context
actors._actor               actors as people write them
actors._serve               one life, from the factory to the last message
actors._verdict             where a crash becomes a value
actors._limits              the tree's rules, as data

# models: what is said to a model, and what it answers
actors.models._blocks       what an answer is made of
actors.models._render       mail as a model reads it
actors.models._items        the transcript's items
actors.models._past         a transcript as one request sees it, without a copy
actors.models._api          what a model is to this project
actors.models._transcript   what may follow what
actors.models._cache        a cache keyed by which object it is
actors.models.scripted      a model that plays a script
actors.models._capabilities what is known of models by name
actors.models._sdk          the SDK of a provider
actors.models._clients      its clients, for one trio.run
actors.models._trouble      what went wrong there
actors.models._remote       a model behind an SDK
actors.models._chat         a request on the chat wire
actors.models._chunks       an answer off the chat wire
actors.models.openai        OpenAI's chat completions
actors.models._messages     a request on Anthropic's wire
actors.models._message_events  an answer off Anthropic's wire
actors.models.anthropic     Anthropic's messages
actors.models._responses    a request on OpenAI's Responses wire
actors.models._response_events  an answer off it
actors.models.openai_responses  OpenAI's Responses
actors.models._contents     a request on Gemini's wire
actors.models._content_parts  an answer off Gemini's wire
actors.models.google        Google's Gemini
actors.models._ollama_chat  Ollama's wire, both ways
actors.models.ollama        Ollama
actors.models.local         a small model in this process
actors.models._gate         how often a provider may be asked, and what it costs
actors.models._resolve      from `provider:name` to a model
actors.models               the face of models

# what an agent's session keeps, and what its model may call
actors.events               what happens, as it happens
actors.agent                sessions
actors.agent._record        what is kept of a session, and what a commit changes
actors.agent._refused       what a provider would not read
actors.agent._news          what a commit tells other sessions
actors.store                where sessions are kept
actors.store._api           what a store is
actors.store._answer        what becomes of the answer to a deferred call
actors.store.memory         in this process, gone with it
actors.store._trouble       what SQLite could not do, in words
actors.store._rows          what stands in rows
actors.store._admit         what becomes of mail, decided from rows
actors.store._post          mail accepted into rows
actors.store._holder        who holds a session
actors.store._schema        the tables, and files that have them
actors.store._watches       who watches whom
actors.store._continuations  deferred calls, and their answers
actors.store._tables        what is done to the tables
actors.store._retention     what may be forgotten
actors.store._checkup       how a file stands
actors.store._change        a commit, as rows
actors.store._writer        one thread, one transaction for all that waits
actors.store._box           what is unread, as the rows have it
actors.store.sqlite         in a file, on one machine
actors.store._pg_connection  psycopg on trio
actors.store._pg_trouble    what PostgreSQL could not do, in words
actors.store._pg_pool       transactions that outlive the loss of a server
actors.store._pg_schema     its tables
actors.store._pg_post       mail accepted into its rows
actors.store._pg_watches    who watches whom, there
actors.store._pg_continuations  deferred calls, and their answers, there
actors.store._pg_tables     what is done to its tables
actors.store._pg_look        a database, from outside its sessions
actors.store._pg_watch      leases, wake-ups, and what nobody holds
actors.store.postgres       in a database, for many machines
actors.store._resolve       from `sqlite:///path` to a store
actors.store._copy          sessions taken elsewhere
actors.tools                functions a model may call
actors.tools._value         what a tool returned, as JSON
actors.tools._context       what a tool can ask of its call
actors.tools._docstring     what a function and its arguments are for
actors.tools._schema        a type, as a model is shown it
actors.tools._signature     parameters: shown to a model, filled by it
actors.tools._worker        a call, inside a worker process
actors.tools._process       calls that can be killed
actors.tools._loop          calls written for asyncio
actors.tools._descent       processes that a call started
actors.tools._tool          functions as tools
actors.tools._mcp           MCP servers, and what their tools are called
actors.tools._mcp_result    what such a server answered
actors.tools._mcp_link      a session's connection to one
actors.tools._toolset       the tools of a session now
actors.tools._collect       which tools an agent has
actors.tools._call          one call, to its outcome

# a session's turn, pure, and the loop that carries it out
actors.agent._fold          mail folded into a turn
actors.agent._wait          what `wait` waits for
actors.agent._actions       what a turn asks for
actors.agent._settle        how a call that is cut short ends
actors.agent._slots         how many calls may run
actors.agent._turn          what to do next: the table
actors.agent._completion    an answer taken over
actors.agent._control       orders, and what else ends calls from outside
actors.agent._timers        what is told later
actors.agent._toolbox       the system tools
actors.agent._answers       who waits for what a session will say
actors.agent._budget        what requests may cost
actors.agent._shape         answers of a given shape
actors.agent._handlers      the agent's own handlers
actors.agent._inbox         strings of the host's
actors.agent._compact       what a request holds of a transcript
actors.agent._agent         agents as people write them
actors.agent._kept          which options of a session are kept
actors.agent._asking        one answer, from the first model that gives one
actors.agent._progress      how far calls are
actors.agent._calls         how a call begins and ends
actors.agent._requests      how a request is made, and what they cost
actors.agent._session       the loop

# for tests of one's own actors
actors._scheduled           task orders drawn from a seed
actors.testing              what records, what holds, and orders that come back
actors._pytest_plugin       the same as fixtures

# what users import
actors                      the face of all this

# supervision: what happens next
supervision._spec           what a tree is made of, as data
supervision._intensity      how many restarts are too many
supervision._strategy       what to do when a life ends: OTP's tables
supervision._place          what stays at an address while lives come and go
supervision._hub            events and their readers
supervision._stream         following one session, or one run
supervision._owner          what a session's tools need kept
supervision._call           the place of a call
supervision._words          what may be said to a session
supervision._spending       what subtrees spend on models
supervision._elsewhere      an answer that another process gives
supervision._session_ref    what a conversation needs of a ref
supervision._reach          whom a model may reach for
supervision._session        the place of a session
supervision._router         who is where, who was, who was meant
supervision._watch          who hears of whose ends
supervision._dead           mail that nobody will handle
supervision._supervisor     a supervisor at work
supervision._lives          how a life begins, ends, and what follows
supervision._succession     what follows the end of a life
supervision._held           who holds the loop
supervision._tree           the tree at one moment, and as text
supervision._report         what hangs, told to a person
supervision._waits          who waits for whom
supervision._opening        how a session is opened
supervision._waking         which stored session comes into memory, and when
supervision._resting        sessions that leave memory
supervision._root           one nursery, one router
supervision._portal         the way in for foreign threads
supervision._system         the block that everything lives in
supervision._runner         a whole program in one call
supervision                 the face of all this

# the command line
supervision.terminal            what `postroom` does
supervision.terminal._dotenv    settings of a folder
supervision.terminal._target    module:Agent becomes a class
supervision.terminal._keyboard  lines typed while something runs
supervision.terminal._lines     what one event says to a person
supervision.terminal._screen    a run as a person watches it
supervision.terminal._json      an event as one line of JSON
supervision.terminal._orders    a typed line, understood
supervision.terminal._conversation  a person's side of a session
supervision.terminal._run       postroom run
supervision.terminal._scene     who plays in the demo
supervision.terminal._demo      postroom demo
supervision.terminal._store     the store that was named
supervision.terminal._sessions  postroom sessions, postroom doctor
supervision.terminal._collector    the garbage collector of a process that serves
supervision.terminal._worker    postroom worker
supervision.terminal._main      the grammar, and errors as text
supervision.__main__        python -m supervision
"""

ROWS = [line.split(maxsplit=1)[0] for line in TABLE.splitlines() if line and not line.startswith("#")]
MODULES = modules("actors", "supervision")
SCRIPTS = "supervision.examples."  # they stand outside and use the public face, as a user's script does

OUTSIDE = {  # which package may be imported where; the rest of the world nowhere
    "attrs": ("actors", "supervision"),
    "cattrs": ("actors", "supervision"),
    "msgspec": ("actors", "supervision"),
    "trio": ("actors", "supervision"),
    "trio_util": ("actors", "supervision"),
    "outcome": ("actors", "supervision"),
    "pytest": ("actors._pytest_plugin",),
    "psycopg": ("actors.store._pg_connection", "actors.store._pg_pool", "actors.store._pg_trouble", "actors.store._pg_watch"),
    "rich": ("supervision.terminal",),
}
EMPTY = {"actors.agent", "actors.store", "actors.tools", "supervision.terminal"}  # packages without a face of their own


def _imports(module: Module, tree: ast.AST | None = None) -> Iterator[tuple[str, int]]:
    """What a module imports, by absolute name, with the line."""
    known = {other.name for other in MODULES}
    for node in ast.walk(tree or module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.package.split(".")[: len(module.package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in known else base), node.lineno


def _inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


each_module = pytest.mark.parametrize("module", MODULES, ids=str)
each_part = pytest.mark.parametrize("module", [module for module in MODULES if not module.name.startswith(SCRIPTS)], ids=str)


def test_the_table_names_every_module_once() -> None:
    """A file that is in no row is a wall nobody decided on."""
    files = [module.name for module in MODULES if not module.name.startswith(SCRIPTS)]
    assert sorted(ROWS) == sorted(files)


@each_part
def test_a_module_imports_only_rows_above(module: Module) -> None:
    """Whoever reads from the top never meets a name from further down."""
    above = set(ROWS[: ROWS.index(module.name)]) if module.name in ROWS else set(ROWS)
    ours = [(name, line) for name, line in _imports(module) if _inside(name, "actors", "supervision")]
    assert [f"line {line}: {name}" for name, line in ours if name not in above] == []


@each_module
def test_actors_never_imports_supervision(module: Module) -> None:
    """`actors` says what happened; `supervision` says what happens next."""
    if module.name.startswith("actors"):
        assert not [name for name, _ in _imports(module) if _inside(name, "supervision")]


@each_part
def test_no_module_imports_its_own_root(module: Module) -> None:
    """A part that imports the whole cannot be read, or loaded, before it."""
    root = module.name.split(".", maxsplit=1)[0]
    assert root not in {name for name, _ in _imports(module)}


@each_module
def test_imports_stand_at_the_top(module: Module) -> None:
    """What a file needs is said where it begins; optional packages are loaded by name, in `_extras`."""
    functions = [
        node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    late = {f"line {line}: {name}" for function in functions for name, line in _imports(module, function)}
    assert not late


@each_module
def test_nothing_hides_behind_type_checking(module: Module) -> None:
    """An import for the type checker alone is a knot that somebody tied."""
    names = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    assert "TYPE_CHECKING" not in names


@each_module
def test_the_outside_is_imported_where_the_table_says(module: Module) -> None:
    """The core runs without any SDK, and drawing is nobody's business but the terminal's."""
    roots = {name.split(".", maxsplit=1)[0] for name, _ in _imports(module)}
    outside = roots - {"actors", "supervision"} - sys.stdlib_module_names
    assert sorted(root for root in outside if not _inside(module.name, *OUTSIDE.get(root, ()))) == []


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_a_package_without_a_face_is_empty(name: str) -> None:
    """A name is re-exported once, by the package that users import."""
    [body] = [module.tree.body for module in MODULES if module.name == name]
    assert all(isinstance(node, ast.Expr) for node in body), "at most its docstring"
