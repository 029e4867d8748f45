"""Deliberate errors in the policy of tiers and in counting: does a test find each of them?

`python -m fusevm.lab.tier_mutations [--only N ...] [--seconds 240]` is as `fusevm.lab.mutations`, with tests alone.
"""

from __future__ import annotations

import sys

from fusevm.lab.mutations import Mutation, main

TESTS = ("test_tier_policy.py", "test_native_choice.py", "test_native_plain.py")

POLICY, PLAIN, CHOICE = "native/host/tier_policy.py", "native/runtime/plain.py", "native/host/choice.py"

MUTATIONS = (
    # what is spent
    Mutation(POLICY, "            self.spent += seconds - noted\n", ""),
    Mutation(POLICY, "return SHARE * self.work +", "return 2 * SHARE * self.work +"),
    Mutation(POLICY, "min(ALLOWANCE, EARLY * self.work)", "EARLY * self.work"),
    Mutation(POLICY, "return self.work >= self._next and self.budget >= WINDOW", "return self.work >= self._next"),
    Mutation(POLICY, "min(MAX_GAP, WIDENS * self._gap)", "self._gap"),
    Mutation(POLICY, "        self._next = self.work + self._gap\n", ""),
    Mutation(
        POLICY, "WINDOW if self.calls >= CALLS else LONG_WINDOW", "0 if self.calls >= CALLS else 10 * LONG_WINDOW"
    ),
    # who is charged
    Mutation(POLICY, "worth * executed / sum(steps.values())", "worth"),
    Mutation(POLICY, "worth = interval * min(1.0,", "worth = interval * max(1.0,"),
    Mutation(POLICY, "self.heat += seconds * moved", "self.heat = seconds * moved"),
    Mutation(POLICY, "interval, self._counted = self.work - self._counted, self.work", "interval = window.seconds"),
    # what is requested
    Mutation(POLICY, "return not (self.asked or self.is_refused) and", "return not self.is_refused and"),
    Mutation(POLICY, "return not (self.asked or self.is_refused) and", "return not self.asked and"),
    Mutation(POLICY, "self.rounds < MAX_ROUNDS and ", ""),
    Mutation(POLICY, " * (1 << self.rounds)", ""),
    Mutation(POLICY, "            each.heat = 0.0\n", ""),
    Mutation(POLICY, "            each.rounds += 1\n", ""),
    Mutation(POLICY, "        if self.rounds and moved < MOVED:\n            return\n", ""),
    Mutation(POLICY, "            each.profile |= counts.keys()\n", ""),
    Mutation(POLICY, "        self.request()  # there may be room now\n", ""),
    Mutation(POLICY, "            each.is_refused = True\n        elif", "            pass\n        elif"),
    Mutation(POLICY, "            if len(self.codes) >= MAX_CODES:\n                self._drop_coldest()\n", ""),
    Mutation(POLICY, "idle.sort(key=lambda key: (self.codes[key].is_refused, self.codes[key].heat))", "idle.reverse()"),
    # whether regions pay
    Mutation(POLICY, "change < FAR_BETTER", "change < 0"),
    Mutation(POLICY, "pays=min(changes) < 1.0 or", "pays=True or"),
    Mutation(POLICY, "pays=min(changes) < 1.0 or sum(changes) / PAIRS < WORSE", "pays=sum(changes) / PAIRS < 0.7"),
    Mutation(POLICY, "            self._off |= trial.batch\n", ""),
    Mutation(POLICY, "            self._suspects += (half, trial.batch - half)\n", ""),
    Mutation(POLICY, "len(trial.arms) < 2 * PAIRS", "len(trial.arms) < 2 * PAIRS + 2"),
    # counting, and how many runs a timed one stands for
    Mutation(PLAIN, "            store(place, 8, u64(0))\n", ""),
    Mutation(PLAIN, "        number = origin.before\n", "        number = 0\n"),
    Mutation(PLAIN, "    draft.steps += 1\n", ""),
    Mutation(CHOICE, "runs = 1 + self._granted - self.free", "runs = 1 + self._granted"),
    Mutation(CHOICE, "        self._granted -= self.free\n", ""),
    Mutation("native/host/regions.py", "schedule.jumps[:]", "schedule.jumps"),
)

if __name__ == "__main__":
    sys.exit(main(None, MUTATIONS, TESTS, (), __doc__))
