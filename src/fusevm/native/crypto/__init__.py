"""Arithmetic of precompiled contracts as native code: each family is compiled when a contract first needs it."""
