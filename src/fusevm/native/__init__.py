"""The native tier: handlers made by LLVM from the word meanings, run over a schedule of pointers."""
