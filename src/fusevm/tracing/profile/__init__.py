"""Where gas went: by function and by line, as tables, folded stacks and flame graphs; and what was covered."""
