"""`enable()`: until `disable()`, every environment that is made is fusevm's, whoever makes it."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import boa
from boa.environment import Env
from boa.network import NetworkEnv

from fusevm.adapters.boa.environment import FusevmEnv

_enabled: list[Enabled] = []  # the outermost first


class Enabled:
    """What `enable()` answers: a context manager that goes back to how it was before."""

    def __init__(self, tier: str, settings: dict[str, Any]) -> None:
        self._before = boa.env, FusevmEnv.default_tier
        self.env = FusevmEnv(tier=tier, **settings)
        FusevmEnv.default_tier = tier
        Env.__new__ = _new
        _enabled.append(self)
        if not isinstance(boa.env, NetworkEnv):  # which `mox test --network …` asks for
            boa.set_env(self.env)

    def __enter__(self) -> FusevmEnv:
        return self.env

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Also ends those that began inside it."""
        if self in _enabled:
            del _enabled[_enabled.index(self) :]
            before, FusevmEnv.default_tier = self._before
            boa.set_env(before)


def enable(tier: str = "auto", **settings: Any) -> Enabled:
    """Makes a new fusevm environment `boa.env`, and `Env()` give one from now on: in `boa.fork`, `boa.reset_env`,
    `boa.set_env(boa.Env())`, `boa.swap_env`, and in tools that make environments, such as moccasin.

    Until `disable()`, or the end of the `with` block. `settings` are those of `FusevmEnv`, for the first environment.
    Environments of a network (`boa.set_network_env`) remain what they are: where `boa.env` is one, it stays.
    """
    return Enabled(tier, settings)


def disable() -> None:
    """The environment from before `enable()` is `boa.env` again; those made from now on are py-evm's."""
    if _enabled:
        _enabled[0].end()


def fork(url: str, *arguments: Any, **named: Any) -> Any:
    """As `boa.fork`, whether `enable()` was called or not: a new fusevm environment on the state of a node."""
    before = boa.env
    with enable():
        boa.set_env(before)  # whose state boa.fork looks at
        opened = boa.fork(url, *arguments, **named)
        forked = boa.env
    boa.set_env(forked)
    return opened  # which goes back to the one before


def _new(kind: type[Env], *_: Any, **__: Any) -> Any:
    """Stays once it is set: Python does not take `__new__` from a class again without a trace."""
    return object.__new__(FusevmEnv if kind is Env and _enabled else kind)
