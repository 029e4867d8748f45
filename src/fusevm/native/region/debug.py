"""Where machine code comes from: LLVM's debug locations, with program counters as lines, for readers of assembly.

Code that runs is compiled without them.
"""

from __future__ import annotations

from llvmlite import ir

FIRST = 1  # the line of pc 0: to LLVM line 0 means that there is none


class DebugLines:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        flags = module.add_named_metadata("llvm.module.flags")
        number = ir.IntType(32)
        flags.add(module.add_metadata([number(2), "Debug Info Version", number(3)]))
        self.file = module.add_debug_info("DIFile", {"filename": "bytecode", "directory": ""})
        self.unit = module.add_debug_info(
            "DICompileUnit",
            {
                "language": ir.DIToken("DW_LANG_C"),
                "file": self.file,
                "producer": "fusevm",
                "runtimeVersion": 0,
                "isOptimized": True,
                "emissionKind": ir.DIToken("LineTablesOnly"),
            },
            is_distinct=True,
        )
        module.add_named_metadata("llvm.dbg.cu", self.unit)
        self._scopes: dict[str, ir.DIValue] = {}

    def location(self, function: ir.Function, pc: int) -> ir.DIValue:
        """The debug location of an instruction of the contract's code."""
        place = {"line": pc + FIRST, "column": 1, "scope": self._scope(function)}
        return self.module.add_debug_info("DILocation", place)

    def _scope(self, function: ir.Function) -> ir.DIValue:
        if function.name not in self._scopes:
            kind = self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([None])})
            scope = self._scopes[function.name] = self.module.add_debug_info(
                "DISubprogram",
                {
                    "name": function.name,
                    "file": self.file,
                    "line": FIRST,
                    "type": kind,
                    "isLocal": True,
                    "unit": self.unit,
                    "spFlags": ir.DIToken("DISPFlagDefinition"),
                },
                is_distinct=True,
            )
            function.set_metadata("dbg", scope)
        return self._scopes[function.name]
