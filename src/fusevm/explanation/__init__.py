"""How a contract is compiled from source to bytecode, step by step, as data that can be shown.

`explain` is `fusevm.explain`; the explorer's page and notebooks draw what it returns.
"""

from fusevm.explanation.comparison import Comparison, compare
from fusevm.explanation.document import Line, Pane
from fusevm.explanation.explain import Explanation, explain
from fusevm.explanation.inputs import BadSource

__all__ = ["BadSource", "Comparison", "Explanation", "Line", "Pane", "compare", "explain"]
