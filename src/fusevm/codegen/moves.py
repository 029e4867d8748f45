"""Stack shuffling: the cheapest moves that bring operands to the top, and that turn one stack into another.

The search sees only a pattern: where the operands are, which of them die, and which slots are dead. Such patterns recur
all over a program, so results are cached.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

REACH = 16
DEAD, OTHER = -1, -2  # a dead slot; one that is needed later
GARBAGE = 5  # the cost of a dead slot that is left to be popped later
_MAX_STATES = 60  # in the search for operands: more find no better code, as measured over the corpus
_MAX_SHUFFLED = 400  # in the search from one stack to another
_MAX_WAYS, _MORE = 3, 4  # how many results are returned, and how much more than the best they may cost

# Moves are numbers: DUP + n, SWAP + n, POP, and PUSH + 256 * n, n being an operand of `bring` or a target index.
DUP, SWAP, POP, PUSH = 0, 32, 64, 96
_POP_GAS, _MOVE_GAS, _BYTE = 2, 3, 1


class FoundMoves(NamedTuple):
    cost: int
    moves: tuple[int, ...]


@lru_cache(maxsize=1 << 16)
def bring(pattern: tuple[int, ...], wanted: tuple[int, ...], dies: int, pushed: int) -> tuple[FoundMoves, ...]:
    """Sequences of moves that put `wanted` on top (its last on top), the cheapest first.

    `pattern` is the stack, the top first: the operand that a slot holds, DEAD or OTHER. Operands whose bit is set in
    `dies` are dead afterwards, those in `pushed` can be pushed anywhere.
    """
    goal = wanted[::-1]
    size = len(goal)
    goals: list[FoundMoves] = []
    ends: set[tuple[int, ...]] = set()
    best: dict[tuple[int, ...], int] = {pattern: 0}
    queue: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = [(0, 0, 0, pattern, ())]
    count, states = 0, 0
    while queue and states < _MAX_STATES:
        _, cost, _, stack, moves = heappop(queue)
        if cost > best[stack]:
            continue
        if goals and cost > goals[0].cost + _MORE:
            break
        states += 1
        if stack[:size] == goal:
            rest = stack[size:]
            garbage = _garbage(rest, wanted, dies, pushed)
            if garbage is not None:
                if rest not in ends:
                    ends.add(rest)
                    goals.append(FoundMoves(cost + garbage * GARBAGE, moves))
                    if len(goals) == _MAX_WAYS:
                        break
                continue
        if len(moves) > 2 * size + 3:
            continue
        for move, price, after in _next(stack, wanted, dies, pushed):
            total = cost + price
            if total < best.get(after, 1 << 30):
                best[after] = total
                count += 1
                heappush(queue, (total + _estimate(after, goal), total, count, after, (*moves, move)))
    return tuple(sorted(goals)) or _one_by_one(pattern, wanted, dies, pushed)


def _one_by_one(pattern: tuple[int, ...], wanted: tuple[int, ...], dies: int, pushed: int) -> tuple[FoundMoves, ...]:
    """Pushes or duplicates every operand: always correct if all are in reach, but leaves the originals on the stack."""
    moves: list[int] = []
    cost = 0
    for above, operand in enumerate(wanted):
        if pushed >> operand & 1:
            moves.append(PUSH + (operand << 8))
        else:
            if operand not in pattern or pattern.index(operand) + above >= REACH:
                return ()
            moves.append(DUP + pattern.index(operand) + above + 1)
        cost += 4 + (GARBAGE if dies >> operand & 1 else 0)
    return (FoundMoves(cost, tuple(moves)),)


def _garbage(rest: tuple[int, ...], wanted: tuple[int, ...], dies: int, pushed: int) -> int | None:
    """How many dead copies are left below; None if an operand that is needed later is not there."""
    left = 0
    for operand in set(wanted):
        copies = rest.count(operand)
        if (dies | pushed) >> operand & 1:
            left += copies
        elif not copies:
            return None
    return left


def _estimate(stack: tuple[int, ...], goal: tuple[int, ...]) -> int:
    """A lower bound of the remaining cost: the operands that are not in place yet."""
    size = len(goal)
    for have in range(min(size, len(stack)), 0, -1):
        if stack[:have] == goal[size - have :]:
            return 4 * (size - have)
    return 4 * (size - 1) if size > 1 else 0


def _next(
    stack: tuple[int, ...], wanted: tuple[int, ...], dies: int, pushed: int
) -> list[tuple[int, int, tuple[int, ...]]]:
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for operand in set(wanted):
        wants, has = wanted.count(operand), stack.count(operand)
        if pushed >> operand & 1:
            if has < wants:
                found.append((PUSH + (operand << 8), 4, (operand, *stack)))
        elif has and (has <= wants or stack[: len(wanted)].count(operand) < wants):
            depth = stack.index(operand)
            if depth < REACH and not (depth == 0 and dies >> operand & 1 and has == wants):
                found.append((DUP + depth + 1, 4, (operand, *stack)))
    if not stack:
        return found
    top = stack[0]
    if top == DEAD:
        found.append((POP, 3, stack[1:]))
    gone = dies | pushed
    for depth in range(1, min(len(stack), REACH + 1)):
        other = stack[depth]
        if other == top:
            continue
        sinks = top >= 0 and depth < len(wanted) + 1
        if sinks or (other >= 0 and gone >> other & 1):
            found.append((SWAP + depth, 4, (other, *stack[1:depth], top, *stack[depth + 1 :])))
    return found


def shuffle(stack: tuple[int, ...], target: tuple[int, ...], made: dict[int, int]) -> FoundMoves | None:
    """Moves from one stack to another, the top last in both. A DEAD slot of the target may hold anything.

    `made` has the cost of the slots that can be pushed. None if a slot is out of reach.
    """
    common = 0
    while common < min(len(stack), len(target)) and (stack[common] == target[common] or target[common] == DEAD):
        common += 1
    if len(stack) - common <= 5 and len(target) - common <= 5:
        found = _search(stack[common:], target[common:], stack[:common], made)
        if found is not None:
            return found
    return _greedy(list(stack), target, made)


def _search(
    stack: tuple[int, ...], target: tuple[int, ...], below: tuple[int, ...], made: dict[int, int]
) -> FoundMoves | None:
    """The cheapest moves if only a few slots on top differ."""
    names: dict[int, int] = {}
    for slot in (*target, *stack):
        names.setdefault(slot, len(names))
    depths = tuple(
        [(names[slot], len(below) - at) for at, slot in enumerate(below) if slot in names and len(below) - at <= REACH]
    )
    key_made = tuple(sorted((names[slot], cost) for slot, cost in made.items() if slot in names))
    wanted = tuple([DEAD if slot == DEAD else names[slot] for slot in target])
    found = _searched(tuple([names[slot] for slot in stack]), wanted, depths, key_made)
    if found is None:
        return None
    shift = len(below)  # indices count from the bottom of the whole stack
    moves = [PUSH + (wanted.index(move >> 8) + shift << 8) if move & 0xFF == PUSH else move for move in found.moves]
    return FoundMoves(found.cost, tuple(moves))


@lru_cache(maxsize=1 << 15)
def _searched(
    stack: tuple[int, ...],
    target: tuple[int, ...],
    below: tuple[tuple[int, int], ...],
    made: tuple[tuple[int, int], ...],
) -> FoundMoves | None:
    costs = dict(made)
    deep = dict(below)
    best: dict[tuple[int, ...], int] = {stack: 0}
    queue: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = [(0, 0, 0, stack, ())]
    count, states = 0, 0
    while queue and states < _MAX_SHUFFLED:
        _, cost, _, now, moves = heappop(queue)
        if cost > best[now]:
            continue
        states += 1
        if len(now) == len(target) and all(want in (DEAD, have) for have, want in zip(now, target, strict=True)):
            return FoundMoves(cost, moves)
        for move, price, after in _steps(now, target, costs, deep):
            total = cost + price
            if total < best.get(after, 1 << 30):
                best[after] = total
                count += 1
                heappush(queue, (total + 3 * abs(len(after) - len(target)), total, count, after, (*moves, move)))
    return None


def _steps(
    stack: tuple[int, ...], target: tuple[int, ...], made: dict[int, int], deep: dict[int, int]
) -> list[tuple[int, int, tuple[int, ...]]]:
    found: list[tuple[int, int, tuple[int, ...]]] = []
    size = len(stack)
    for slot in set(target):
        if slot == DEAD:
            continue
        if slot in made:
            found.append((PUSH + (slot << 8), made[slot], (*stack, slot)))
        if slot in stack:
            depth = stack[::-1].index(slot)
            found.append((DUP + depth + 1, _MOVE_GAS + _BYTE, (*stack, slot)))
        elif slot in deep and size + deep[slot] <= REACH:
            found.append((DUP + size + deep[slot], _MOVE_GAS + _BYTE, (*stack, slot)))
    if not stack:
        return found
    top = stack[-1]
    if stack.count(top) > target.count(top) or size > len(target):
        found.append((POP, _POP_GAS + _BYTE, stack[:-1]))
    for depth in range(1, min(size, REACH + 1)):
        other = stack[-1 - depth]
        if other != top:
            swapped = (*stack[: -1 - depth], top, *stack[size - depth : -1], other)
            found.append((SWAP + depth, _MOVE_GAS + _BYTE, swapped))
    return found


def _greedy(stack: list[int], target: tuple[int, ...], made: dict[int, int]) -> FoundMoves | None:
    """Correct moves, not always the fewest: pops surplus slots, adds missing ones, then swaps slots into place."""
    moves: list[int] = []
    cost = 0

    def swap(depth: int) -> bool:
        nonlocal cost
        if depth > REACH:
            return False
        moves.append(SWAP + depth)
        cost += _MOVE_GAS + _BYTE
        stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]
        return True

    for _ in range(400):
        size, wanted = len(stack), len(target)
        surplus = _surplus(stack, target)
        top = size - 1
        if size and (top in surplus):
            moves.append(POP)
            cost += _POP_GAS + _BYTE
            stack.pop()
            continue
        place = _place_for(stack, target, surplus)
        if place is not None:
            if not swap(top - place):
                return None
            continue
        if surplus:
            deepest = max(surplus)
            if not swap(top - deepest):
                return None
            continue
        if size < wanted:
            slot = _missing(stack, target, made)
            if slot == DEAD and stack:
                slot = stack[-1]  # anything will do
            if slot in made and slot in target:
                moves.append(PUSH + (target.index(slot) << 8))
                cost += made[slot]
            else:
                depth = stack[::-1].index(slot) + 1 if slot in stack else REACH + 1
                if depth > REACH:
                    return None
                moves.append(DUP + depth)
                cost += _MOVE_GAS + _BYTE
            stack.append(slot)
            continue
        wrong = [at for at in range(size) if target[at] not in (DEAD, stack[at])]
        if not wrong:
            return FoundMoves(cost, tuple(moves))
        if not swap(top - wrong[0]):
            return None
    return None


def _surplus(stack: list[int], target: tuple[int, ...]) -> list[int]:
    """Indices of slots that the target does not need; slots that are in place already are kept first."""
    need: dict[int, int] = {}
    for slot in target:
        if slot != DEAD:
            need[slot] = need.get(slot, 0) + 1
    for at, slot in enumerate(stack):
        if at < len(target) and target[at] == slot != DEAD:
            need[slot] -= 1
    found = []
    for at, slot in enumerate(stack):
        if at < len(target) and target[at] in (slot, DEAD):
            continue
        if need.get(slot, 0) > 0:
            need[slot] -= 1
        else:
            found.append(at)
    return found


def _place_for(stack: list[int], target: tuple[int, ...], surplus: list[int]) -> int | None:
    """The index that the top slot belongs to, if it is not in place."""
    top = len(stack) - 1
    if top < 0 or (top < len(target) and target[top] in (stack[top], DEAD) and top < len(target)):
        return None
    for at in range(min(top, len(target))):
        if target[at] == stack[top] != stack[at]:
            return at
    return None


def _missing(stack: list[int], target: tuple[int, ...], made: dict[int, int]) -> int:
    """The next slot to push: one soon out of reach, the one that belongs above the top, another, or DEAD."""
    have: dict[int, int] = {}
    for slot in stack:
        have[slot] = have.get(slot, 0) + 1
    need: dict[int, int] = {}
    for slot in target:
        if slot != DEAD:
            need[slot] = need.get(slot, 0) + 1
    scarce = [slot for slot in need if slot in have and slot not in made and need[slot] > have[slot]]
    deepest, slot = max(((stack[::-1].index(slot) + 1, slot) for slot in scarce), default=(0, DEAD))
    if deepest + len(target) - len(stack) > REACH + 1:
        return slot
    wanted = target[len(stack)]
    if wanted != DEAD and need[wanted] > have.get(wanted, 0):
        return wanted
    return next((slot for slot in target if slot != DEAD and need[slot] > have.get(slot, 0)), DEAD)
