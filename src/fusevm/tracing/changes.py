"""What each call of a recording has changed: slots, ether, and contracts made; its inner calls included.

>>> from fusevm import EVM
>>> evm = EVM()
>>> evm.set_code("0x" + "c0" * 20, "0x60075f5560085f5560095f55")  # storage[0] = 7, then 8, then 9
>>> with evm.record(storage=True) as recording:
...     result = evm.call("0x" + "c0" * 20)
>>> changes_of(recording.frames[0]).storage
{b'\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0\\xc0': {0: (0, 9)}}
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fusevm.tracing.recording import FrameKind, RecordedFrame, StorageWrite

_MOVING = (FrameKind.CALL, FrameKind.CREATE, FrameKind.CREATE2, FrameKind.SELFDESTRUCT)


@dataclass(slots=True)
class Changes:
    """What is different after a call; what it changed and changed back is not."""

    storage: dict[bytes, dict[int, tuple[int, int]]] = field(default_factory=dict)  # by account and slot: before, after
    ether: dict[bytes, int] = field(default_factory=dict)  # by account: how much more it has
    created: list[bytes] = field(default_factory=list)


def changes_of(frame: RecordedFrame) -> Changes:
    """Of a call that was recorded with `storage=True`. One that failed, or whose caller did, has changed nothing.

    Fees, nonces and refunds are the transaction's; what an account that destroyed itself had is not listed.
    """
    found = Changes()
    if frame.undone:
        return found
    slots: dict[tuple[bytes, int], tuple[int, int]] = {}
    waiting: list[object] = [frame]
    while waiting:
        event = waiting.pop()
        if isinstance(event, StorageWrite) and not event.transient:
            place = (event.address, event.key)
            slots[place] = slots.get(place, (event.previous, 0))[0], event.value
        elif isinstance(event, RecordedFrame) and not event.undone:
            _move(found.ether, event)
            if event.created is not None:
                found.created.append(event.created)
            waiting += reversed(event.events)
    for (address, key), (before, after) in slots.items():
        if before != after:
            found.storage.setdefault(address, {})[key] = before, after
    found.ether = {address: amount for address, amount in found.ether.items() if amount}
    return found


def _move(ether: dict[bytes, int], frame: RecordedFrame) -> None:
    if frame.value and frame.kind in _MOVING:
        ether[frame.caller] = ether.get(frame.caller, 0) - frame.value
        ether[frame.address] = ether.get(frame.address, 0) + frame.value
