"""The steps of the optimiser: a table of every step with its letter, its names and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fusevm.yul.context import StepContext
from fusevm.yul.syntax.ast import Block


@dataclass(frozen=True, slots=True)
class OptimiserStep:
    """`needs` are the steps that must have been run at some time before, by name; `run` changes the block in place."""

    name: str
    letter: str | None
    run: Callable[[StepContext, Block], None]
    needs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def _run(module: str) -> Callable[[StepContext, Block], None]:
    """The step's function; its module is loaded when it is first called."""

    def run(context: StepContext, block: Block) -> None:
        from importlib import import_module

        import_module(f"{__name__}.{module}").run(context, block)

    return run


_UNIQUE = ("Disambiguator",)
_LOOPS = ("Disambiguator", "ForLoopInitRewriter")
_HOISTED = ("Disambiguator", "FunctionHoister")
_GROUPED = ("Disambiguator", "FunctionHoister", "FunctionGrouper")
_HOISTED_LOOPS = ("Disambiguator", "FunctionHoister", "ForLoopInitRewriter")

STEPS = (
    OptimiserStep("Disambiguator", None, _run("disambiguator")),
    OptimiserStep("BlockFlattener", "f", _run("block_flattener"), _GROUPED),
    OptimiserStep("CircularReferencesPruner", "l", _run("circular_references_pruner"), _HOISTED),
    OptimiserStep("CommonSubexpressionEliminator", "c", _run("common_subexpression_eliminator"), _LOOPS),
    OptimiserStep("ConditionalSimplifier", "C", _run("conditional_simplifier"), _UNIQUE),
    OptimiserStep("ConditionalUnsimplifier", "U", _run("conditional_unsimplifier"), _UNIQUE),
    OptimiserStep("ControlFlowSimplifier", "n", _run("control_flow_simplifier"), _LOOPS),
    OptimiserStep("DeadCodeEliminator", "D", _run("dead_code_eliminator"), _LOOPS),
    OptimiserStep("EqualStoreEliminator", "E", _run("equal_store_eliminator"), _LOOPS),
    OptimiserStep("EquivalentFunctionCombiner", "v", _run("equivalent_function_combiner"), _HOISTED),
    OptimiserStep("ExpressionInliner", "e", _run("expression_inliner"), _UNIQUE, ("FunctionalInliner",)),
    OptimiserStep("ExpressionJoiner", "j", _run("expression_joiner"), _UNIQUE),
    OptimiserStep("ExpressionSimplifier", "s", _run("expression_simplifier"), _LOOPS),
    OptimiserStep("ExpressionSplitter", "x", _run("expression_splitter"), _UNIQUE),
    OptimiserStep("ForLoopConditionIntoBody", "I", _run("for_loop_condition_into_body"), _UNIQUE),
    OptimiserStep("ForLoopConditionOutOfBody", "O", _run("for_loop_condition_out_of_body"), _UNIQUE),
    OptimiserStep("ForLoopInitRewriter", "o", _run("for_loop_init_rewriter"), _UNIQUE),
    OptimiserStep("FullInliner", "i", _run("full_inliner"), _GROUPED, ("FullFunctionInliner",)),
    OptimiserStep("FunctionGrouper", "g", _run("function_grouper"), _UNIQUE),
    OptimiserStep("FunctionHoister", "h", _run("function_hoister"), _UNIQUE),
    OptimiserStep("FunctionSpecializer", "F", _run("function_specializer"), _HOISTED),
    OptimiserStep("LiteralRematerialiser", "T", _run("literal_rematerialiser"), _LOOPS),
    OptimiserStep("LoadResolver", "L", _run("load_resolver"), _LOOPS),
    OptimiserStep("LoopInvariantCodeMotion", "M", _run("loop_invariant_code_motion"), _HOISTED_LOOPS),
    OptimiserStep(
        "UnusedAssignEliminator", "r", _run("unused_assign_eliminator"), _LOOPS, ("RedundantAssignEliminator",)
    ),
    OptimiserStep("UnusedStoreEliminator", "S", _run("unused_store_eliminator"), _LOOPS, ("RedundantStoreEliminator",)),
    OptimiserStep("Rematerialiser", "m", _run("rematerialiser"), _LOOPS),
    OptimiserStep("SSAReverser", "V", _run("ssa_reverser"), _UNIQUE),
    OptimiserStep("SSATransform", "a", _run("ssa_transform"), _LOOPS),
    OptimiserStep("StructuralSimplifier", "t", _run("structural_simplifier"), _LOOPS),
    OptimiserStep("UnusedFunctionParameterPruner", "p", _run("unused_function_parameter_pruner"), _HOISTED),
    OptimiserStep("UnusedPruner", "u", _run("unused_pruner"), _UNIQUE),
    OptimiserStep("VarDeclInitializer", "d", _run("var_decl_initializer")),
    OptimiserStep("ConstantOptimiser", None, _run("constant_optimiser"), (), ("ConstantOptimizer",)),
    OptimiserStep("StackCompressor", None, _run("stack_compressor"), (*_GROUPED, "ForLoopInitRewriter")),
    OptimiserStep("StackLimitEvader", None, _run("stack_limit_evader"), _UNIQUE),
    OptimiserStep("NameSimplifier", None, _run("name_simplifier"), _UNIQUE),
    OptimiserStep("VarNameCleaner", None, _run("var_name_cleaner"), _GROUPED),
    OptimiserStep("MainFunction", None, _run("main_function"), _GROUPED),
)

BY_LETTER = {step.letter: step for step in STEPS if step.letter is not None}
BY_NAME = {name: step for step in STEPS for name in (step.name, *step.aliases)}
