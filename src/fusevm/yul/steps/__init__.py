"""The steps of the optimiser: a table of every step with its letter, its names and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fusevm.yul.context import Context
from fusevm.yul.syntax.ast import Block


@dataclass(frozen=True, slots=True)
class Step:
    """`needs` are the steps that must have been run at some time before, by name; `run` changes the block in place."""

    name: str
    letter: str | None
    run: Callable[[Context, Block], None]
    needs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def _run(module: str) -> Callable[[Context, Block], None]:
    """The step's function; its module is loaded when it is first called."""

    def run(context: Context, block: Block) -> None:
        from importlib import import_module

        import_module(f"{__name__}.{module}").run(context, block)

    return run


_UNIQUE = ("Disambiguator",)
_LOOPS = ("Disambiguator", "ForLoopInitRewriter")
_HOISTED = ("Disambiguator", "FunctionHoister")
_GROUPED = ("Disambiguator", "FunctionHoister", "FunctionGrouper")
_HOISTED_LOOPS = ("Disambiguator", "FunctionHoister", "ForLoopInitRewriter")

STEPS = (
    Step("Disambiguator", None, _run("disambiguator")),
    Step("BlockFlattener", "f", _run("block_flattener"), _GROUPED),
    Step("CircularReferencesPruner", "l", _run("circular_references_pruner"), _HOISTED),
    Step("CommonSubexpressionEliminator", "c", _run("common_subexpression_eliminator"), _LOOPS),
    Step("ConditionalSimplifier", "C", _run("conditional_simplifier"), _UNIQUE),
    Step("ConditionalUnsimplifier", "U", _run("conditional_unsimplifier"), _UNIQUE),
    Step("ControlFlowSimplifier", "n", _run("control_flow_simplifier"), _LOOPS),
    Step("DeadCodeEliminator", "D", _run("dead_code_eliminator"), _LOOPS),
    Step("EqualStoreEliminator", "E", _run("equal_store_eliminator"), _LOOPS),
    Step("EquivalentFunctionCombiner", "v", _run("equivalent_function_combiner"), _HOISTED),
    Step("ExpressionInliner", "e", _run("expression_inliner"), _UNIQUE, ("FunctionalInliner",)),
    Step("ExpressionJoiner", "j", _run("expression_joiner"), _UNIQUE),
    Step("ExpressionSimplifier", "s", _run("expression_simplifier"), _LOOPS),
    Step("ExpressionSplitter", "x", _run("expression_splitter"), _UNIQUE),
    Step("ForLoopConditionIntoBody", "I", _run("for_loop_condition_into_body"), _UNIQUE),
    Step("ForLoopConditionOutOfBody", "O", _run("for_loop_condition_out_of_body"), _UNIQUE),
    Step("ForLoopInitRewriter", "o", _run("for_loop_init_rewriter"), _UNIQUE),
    Step("FullInliner", "i", _run("full_inliner"), _GROUPED, ("FullFunctionInliner",)),
    Step("FunctionGrouper", "g", _run("function_grouper"), _UNIQUE),
    Step("FunctionHoister", "h", _run("function_hoister"), _UNIQUE),
    Step("FunctionSpecializer", "F", _run("function_specializer"), _HOISTED),
    Step("LiteralRematerialiser", "T", _run("literal_rematerialiser"), _LOOPS),
    Step("LoadResolver", "L", _run("load_resolver"), _LOOPS),
    Step("LoopInvariantCodeMotion", "M", _run("loop_invariant_code_motion"), _HOISTED_LOOPS),
    Step("UnusedAssignEliminator", "r", _run("unused_assign_eliminator"), _LOOPS, ("RedundantAssignEliminator",)),
    Step("UnusedStoreEliminator", "S", _run("unused_store_eliminator"), _LOOPS, ("RedundantStoreEliminator",)),
    Step("Rematerialiser", "m", _run("rematerialiser"), _LOOPS),
    Step("SSAReverser", "V", _run("ssa_reverser"), _UNIQUE),
    Step("SSATransform", "a", _run("ssa_transform"), _LOOPS),
    Step("StructuralSimplifier", "t", _run("structural_simplifier"), _LOOPS),
    Step("UnusedFunctionParameterPruner", "p", _run("unused_function_parameter_pruner"), _HOISTED),
    Step("UnusedPruner", "u", _run("unused_pruner"), _UNIQUE),
    Step("VarDeclInitializer", "d", _run("var_decl_initializer")),
    Step("ConstantOptimiser", None, _run("constant_optimiser"), (), ("ConstantOptimizer",)),
    Step("StackCompressor", None, _run("stack_compressor"), (*_GROUPED, "ForLoopInitRewriter")),
    Step("StackLimitEvader", None, _run("stack_limit_evader"), _UNIQUE),
    Step("NameSimplifier", None, _run("name_simplifier"), _UNIQUE),
    Step("VarNameCleaner", None, _run("var_name_cleaner"), _GROUPED),
    Step("MainFunction", None, _run("main_function"), _GROUPED),
)

BY_LETTER = {step.letter: step for step in STEPS if step.letter is not None}
BY_NAME = {name: step for step in STEPS for name in (step.name, *step.aliases)}
