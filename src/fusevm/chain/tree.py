"""The tree of known blocks: which are canonical, which is the head, and the state after the head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from fusevm.chain.diffs import Diff, diff_since
from fusevm.chain.genesis import Genesis
from fusevm.chain.header import ZERO_HASH
from fusevm.chain.history import WHOLE, HistoryNode
from fusevm.values import BadValue, to_hash

Which: TypeAlias = int | bytes | str  # a number, or a hash as bytes or hex text


class BlockTree:
    """Blocks by hash, and the canonical ones by number."""

    def __init__(self, genesis: Genesis) -> None:
        first = HistoryNode(genesis.block, genesis.block.header.difficulty, Diff([], [], []), (), None)
        self.state = genesis.state.copy()
        self.nodes = {first.hash: first}
        self.head = first
        self.on_change: Callable[[Diff], None] | None = None  # called with every committed change of the state
        self._first = first.number
        self._canonical = [first.hash]

    def node(self, which: Which) -> HistoryNode:
        """A block of the canonical chain by number, or any known one by hash."""
        node = self.nodes.get(which) if isinstance(which, bytes) else None
        if node is not None:
            return node
        if isinstance(which, int):
            place = which - self._first
            if not 0 <= place < len(self._canonical):
                raise BadValue(f"block {which}: the chain goes from {self._first} to {self.head.number}")
            return self.nodes[self._canonical[place]]
        found = to_hash(which, "block")
        if found not in self.nodes:
            raise BadValue(f"block 0x{found.hex()}: not known")
        return self.nodes[found]

    def hashes(self, parent_hash: bytes) -> Callable[[int], bytes]:
        """The hashes of a block's ancestors by number, for BLOCKHASH."""
        path = [parent_hash]

        def hash_of(number: int) -> bytes:
            newest = self.nodes[parent_hash].number
            while len(path) <= newest - number:
                node = self.nodes.get(path[-1])
                if node is None:
                    return ZERO_HASH
                path.append(node.header.parent_hash)
            return path[newest - number]

        return hash_of

    @contextmanager
    def scratch(self) -> Iterator[Callable[[HistoryNode], None]]:
        """Undoes at its end what was done to the state, unless its function was told which block it is now after."""
        state = self.state
        opened = state.open_marks
        mark = state.mark()
        reached: list[HistoryNode] = []
        state.open_mark(mark)
        try:
            yield reached.append
        finally:
            if reached:
                self._set_head(reached[-1])
                if self.on_change is not None:
                    self.on_change(diff_since(state, mark))
                state.keep_since(keep=opened)
            else:
                state.close_mark(mark, keep=opened)

    def move_to(self, target: HistoryNode) -> None:
        """Takes the state from the head to another block, over their last common ancestor; inside `scratch`."""
        start = self.head
        forward: list[HistoryNode] = []
        while start is not target:
            if start.number >= target.number:
                start.diff.undo(self.state)
                start = self.nodes[start.header.parent_hash]
            else:
                forward.append(target)
                target = self.nodes[target.header.parent_hash]
        for node in reversed(forward):
            node.diff.apply(self.state)

    def edit(self, mark: int) -> HistoryNode:
        """The head again, with all changes of the state since a mark as its own."""
        node = self.head.with_diff(self.head.diff.followed_by(diff_since(self.state, mark)))
        self.nodes[node.hash] = node
        return node

    def return_to(self, bookmark: HistoryNode) -> None:
        """Goes back to a block of the canonical chain, as it was; the blocks after it are forgotten."""
        target = self.nodes.get(bookmark.hash)
        place = bookmark.number - self._first
        if target is None or place >= len(self._canonical) or self._canonical[place] != bookmark.hash:
            raise BadValue(f"block {bookmark.number}: not of the chain any more; it was gone back further")
        gone = self._canonical[place + 1 :]
        with self.scratch() as keep:
            self.move_to(target)
            if target is not bookmark:
                target.diff.undo(self.state)
                bookmark.diff.apply(self.state)
            self.nodes[bookmark.hash] = bookmark
            keep(bookmark)
        del self._canonical[place + 1 :]
        for block_hash in gone:
            del self.nodes[block_hash]

    def _set_head(self, node: HistoryNode) -> None:
        """The canonical chain ends with this block, whose state is the current one."""
        branch: list[bytes] = []
        place = node.number - self._first
        found = node.hash
        while place >= len(self._canonical) or self._canonical[place] != found:
            branch.append(found)
            found = self.nodes[found].header.parent_hash
            place -= 1
        self._canonical[place + 1 :] = reversed(branch)
        self.head = node
        for old in self._canonical[-WHOLE - len(branch) : -WHOLE]:
            self.nodes[old].pack()
