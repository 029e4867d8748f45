"""Tells ape of fusevm's provider: `ethereum:local:fusevm`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ape import plugins


@plugins.register(plugins.ProviderPlugin)  # type: ignore[misc]
def providers() -> Iterator[Any]:
    from fusevm.adapters.ape import ApeProvider

    yield "ethereum", "local", ApeProvider
