"""The schedule: code decoded once into handlers and operands, with sequences fused."""
